# The lab of a Linux bridge as a shell script, and the document of its listener.
mkdir /tmp/out
farlane latency lab --bridge linux --gate /tmp/gates --count 50 --dry-run >/tmp/script
export out=/tmp/out
step "the script of a lab" sh /tmp/script
ls /tmp/out
echo "@@ listen"
cat /tmp/out/linux-gates-listen.json
echo "@@ end"
