# A command in the namespace talker, as a shell reads it. Argument: the command.
ip netns exec talker sh -c "$1"
