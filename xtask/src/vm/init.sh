#!/bin/busybox sh
# Process 1 of the guest: mounts the machine's root file system below a throw-away layer, runs the command that
# the host left in the run folder, leaves its status there, and powers off.
# The host knows three states by files in the run folder: nothing yet (booting), `up` (the command runs), `status`.
export PATH=/bin
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
while read -r module; do insmod "$module" || echo "guest: insmod $module failed"; done < /module-order

argument() { sed -n "s/.*$1=\([^ ]*\).*/\1/p" /proc/cmdline; }
run=$(argument vm_run)
kernel=$(argument vm_kernel)
version=$(uname -r)
fail() { echo "guest: $*"; sleep 1; poweroff -f; }

# /host: the machine's files, /layer: what the guest writes over them, /root-fs: both together.
mount -t virtiofs host /host || fail "cannot mount the machine's files"
mount -t tmpfs -o size=75% tmpfs /layer
mkdir /layer/upper /layer/work
mount -t overlay -o lowerdir=/host,upperdir=/layer/upper,workdir=/layer/work overlay /root-fs || fail "no overlay"
mkdir -p "/root-fs/lib/modules/$version"
mount --bind "/host$kernel/lib/modules/$version" "/root-fs/lib/modules/$version"
for folder in proc sys dev; do mount --move /$folder /root-fs/$folder; done
mkdir -p /root-fs/dev/pts /root-fs/dev/shm
mount -t devpts devpts /root-fs/dev/pts
mount -t tmpfs tmpfs /root-fs/dev/shm
mount -t tmpfs tmpfs /root-fs/run
ln -sfn /proc/self/fd /root-fs/dev/fd
ln -sfn fd/0 /root-fs/dev/stdin
ln -sfn fd/1 /root-fs/dev/stdout
ln -sfn fd/2 /root-fs/dev/stderr
mount -t cgroup2 cgroup2 /root-fs/sys/fs/cgroup
mount -t bpf bpf /root-fs/sys/fs/bpf
mount -t tracefs tracefs /root-fs/sys/kernel/tracing 2>/dev/null
# The kernel loads missing modules by a program of process 1's own root, which is not where modprobe is.
printf '#!/bin/busybox sh\nexec /bin/busybox chroot /root-fs /sbin/modprobe "$@"\n' > /bin/load-module
chmod +x /bin/load-module
echo /bin/load-module > /root-fs/proc/sys/kernel/modprobe
hostname guest
ip link set lo up

for port in /root-fs/sys/class/virtio-ports/*; do
    case $(cat "$port/name") in
        stdout) out=/root-fs/dev/${port##*/} ;;
        stderr) err=/root-fs/dev/${port##*/} ;;
    esac
done
mkfifo /out /err
cat /out > "$out" & out_relay=$!
cat /err > "$err" & err_relay=$!

cp "/host$run/command" /root-fs/run/command
cut -d' ' -f1 /root-fs/proc/uptime > "/host$run/up"
chroot /root-fs /bin/sh /run/command < /dev/null > /out 2> /err
status=$?
# Output that is still on its way; a process the command left behind would keep the relays for ever.
tries=0
while [ $tries -lt 20 ] && { kill -0 $out_relay || kill -0 $err_relay; } 2>/dev/null; do
    usleep 100000
    tries=$((tries + 1))
done
echo $status > "/host$run/status.part"
mv "/host$run/status.part" "/host$run/status"
sync
poweroff -f
