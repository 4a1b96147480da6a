#!/usr/bin/env perl
# Ways to use a file in Perl, by their names: perl_files.pl FILE WAY...
#
# Whatever fails ends the program with the message of the system.
use strict;
use warnings;
use Fcntl qw(:DEFAULT :flock :seek);
use IO::Handle;

my ($name, @ways) = @ARGV;

sub put {
    my ($file, $text) = @_;
    $file->autoflush(1);
    print {$file} $text or die "print: $!\n";
    close $file or die "close: $!\n";
}

sub opened {
    my ($mode) = @_;
    open my $file, $mode, $name or die "open $mode: $!\n";
    return $file;
}

my %ways = (
    '>>' => sub { put(opened('>>'), "more\n") },
    '>' => sub { put(opened('>'), "gone\n") },
    '+<' => sub { put(opened('+<'), "gone\n") },
    '+>>' => sub {
        my $file = opened('+>>');
        $file->autoflush(1);
        print {$file} "more\n" or die "print: $!\n";
        seek $file, 0, SEEK_SET or die "seek: $!\n";
        print <$file>;
    },
    '<' => sub { my $file = opened('<'); print <$file> },
    'sysopen' => sub {
        sysopen my $file, $name, O_WRONLY | O_APPEND | O_CREAT or die "sysopen: $!\n";
        syswrite $file, "more\n" or die "syswrite: $!\n";
        close $file or die "close: $!\n";
    },
    'flock' => sub {
        my $file = opened('>>');
        flock $file, LOCK_EX or die "flock: $!\n";
        put($file, "more\n");
    },
    'tests' => sub {
        my @tests = (-e $name, -f _, -r _, -w _, !-z _, -s _, -T $name, !-B $name);
        print join(' ', map { $_ || 0 } @tests), "\n";
    },
    'truncate' => sub { truncate $name, 0 or die "truncate: $!\n" },
    'rename' => sub { rename $name, "$name-other" or die "rename: $!\n" },
    'unlink' => sub { unlink $name or die "unlink: $!\n" },
);
foreach my $way (@ways) {
    ($ways{$way} or die "no way $way\n")->();
}
