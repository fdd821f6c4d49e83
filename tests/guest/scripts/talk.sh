# Frames from the namespace talker, and what it says. Arguments: whereto, and options.
ip netns exec talker farlane latency talk "$@" --json >/tmp/talk
echo "@@ talk"
cat /tmp/talk
echo "@@ end"
