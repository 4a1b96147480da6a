"""Prints the configuration of an rsyslogd that writes what comes on FOLDER/socket to FILE.

rsyslog_conf.py FOLDER FILE
"""
import sys

folder, file = sys.argv[1:]
print(f"""
global(workDirectory="{folder}")
module(load="imuxsock" SysSock.Use="off")
input(type="imuxsock" Socket="{folder}/socket" ratelimit.interval="0")
template(name="message" type="string" string="%msg%\\n")
action(type="omfile" file="{file}" template="message")
""")
