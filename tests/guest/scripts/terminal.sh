# A command as the shell of a machine reads it. Arguments: its namespace, the command.
mkdir -p "/run/$1"
cd "/run/$1" && ip netns exec "$1" sh -c "$2"
