# The listener has ended; what it says.
ended() { ! pidof farlane >/dev/null; }

until_true 20 ended || die "$(cat /tmp/said)"
echo "@@ listen"
cat /tmp/listen
echo "@@ end"
