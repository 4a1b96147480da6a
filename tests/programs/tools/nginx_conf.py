"""Prints the configuration of an nginx that serves FOLDER on FOLDER/socket and logs to LOGS.

nginx_conf.py FOLDER LOGS
"""
import sys

folder, logs = sys.argv[1:]
kinds = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
scratch = "\n".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
print(f"""
daemon off;
user root;
worker_processes 2;
pid {folder}/pid;
error_log {logs}/error.log;
events {{}}
http {{
    {scratch}
    access_log {logs}/access.log;
    server {{
        listen unix:{folder}/socket;
        root {folder}/site;
    }}
}}
""")
