# Speaks as checkpatch.pl does, finds two things as the real one does, and dies when it is started in the wrong way.
open(my $words, '<', __FILE__ =~ s/checkpatch.pl/spelling.txt/r) or die "no spelling.txt\n";
die "no configuration of its own\n" unless -z "$ENV{CHECKPATCH_CONFIG_DIR}/.checkpatch.conf" && -z ".checkpatch.conf";
my ($file, $found) = ("", 0);
while (<STDIN>) {
	die "broken on purpose\n" if /^\+BREAK/;
	$file = $1 if /^\+\+\+ b\/(.*)/;
	if (/^\+.* \t/) {
		print "ERROR:CODE_INDENT: code indent should use tabs where possible\n#$.: FILE: $file:2:\n$_\n";
		$found = 1;
	}
	if (/^\+.{90}/) {
		print "WARNING:LONG_LINE: line length of 91 exceeds 90 columns\n#$.: FILE: $file:3:\n$_\n";
		$found = 1;
	}
}
exit $found;
