import { existsSync, lstatSync, readlinkSync } from 'node:fs'
import { boundWords, type Enclosed, namesOfKeys, quote, systemFolders } from './enclosure.ts'

/**
 * The words that run a command in namespaces of its own, made with `unshare`: an empty network, a
 * file system with nothing but what is named, processes that see only themselves. The first process
 * in there waits for the command and takes everything with it when it ends.
 */
export function unshareWords(
  enclosed: Enclosed,
  command: readonly string[],
  { asRoot }: { readonly asRoot: boolean },
): readonly string[] {
  return [
    ...['unshare', ...(asRoot ? [] : ['--map-root-user'])],
    ...(enclosed.hasNetwork ? [] : ['--net']),
    ...['--mount', '--propagation=private', '--ipc', '--uts', '--pid', '--fork', '--kill-child'],
    ...['/bin/sh', '-c', newRootScript(enclosed), 'sh', ...boundWords(enclosed.limits)],
    ...['setpriv', '--no-new-privs', '--bounding-set=-all', '--inh-caps=-all', '--', ...command],
  ]
}

/** Folders that may stay empty inside, one of which the new root is built over. */
const places = ['/mnt', '/media', '/srv', '/opt', '/home', '/tmp', '/var']

/**
 * Builds a root of a tmpfs over a folder that nothing inside needs, binds what is named into it and
 * changes to it. All of it happens in a mount namespace that nobody else sees.
 */
function newRootScript(enclosed: Enclosed): string {
  const { readable, writable, binds = [], workingFolder, hasNetwork, limits } = enclosed
  const bound = [...systemFolders.filter(folder => existsSync(folder)), ...readable]
  const used = [...bound, ...writable, ...binds.map(({ from }) => from)]
  const isFree = (place: string): boolean =>
    existsSync(place) && !used.some(each => `${each}/`.startsWith(`${place}/`))
  const root = places.find(isFree)
  if (root === undefined) throw new Error(`none of ${places.join(', ')} can be hidden inside`)
  const { temporary = 256, fileSize } = limits
  const hasTemporary = fileSize !== 0 && !readable.includes('/tmp')
  return [
    'set -e',
    `mount -t tmpfs -o mode=755,size=1m,nr_inodes=8192 espalier ${root}`,
    `cd ${root}`,
    'mkdir -p dev proc tmp old',
    ...(hasTemporary ? [`mount -t tmpfs -o mode=1777,size=${temporary}m espalier tmp`] : []),
    bindFunction,
    ...['null', 'zero', 'random', 'urandom'].map(name => `bind /dev/${name}`),
    'mount -t proc -o ro proc proc 2>/dev/null || true',
    // Their names say what the operator has, even if they cannot be read.
    ...namesOfKeys.map(name => `[ ! -e .${name} ] || mount --bind dev/null .${name}`),
    ...bound.map(showPath),
    lockBound,
    ...writable.map(path => `bind ${quote(path)}`),
    ...binds.map(
      ({ from, to }) => `mkdir -p .${quote(to)}\nmount --rbind ${quote(from)} .${quote(to)}`,
    ),
    ...(hasNetwork ? [] : ['ip link set lo up 2>/dev/null || true']),
    'pivot_root . old',
    'cd /',
    'umount -l /old',
    'rmdir /old',
    'mount -o remount,bind,ro /',
    `cd ${quote(workingFolder)}`,
    // Not as the first process of the namespace, because signals work differently there.
    '"$@" || exit $?',
  ].join('\n')
}

/** A link is made again, such as /bin to usr/bin; anything else is bound. */
function showPath(path: string): string {
  const isLink = lstatSync(path).isSymbolicLink() && systemFolders.includes(path)
  return isLink ? `ln -s ${quote(readlinkSync(path))} .${path}` : `bind ${quote(path)}`
}

/** Binds a path below the new root, with whatever is mounted in it. */
const bindFunction = `bind() {
  if [ -d "$1" ]; then mkdir -p ".$1"; else mkdir -p ".$(dirname "$1")"; [ -e ".$1" ] || : > ".$1"; fi
  mount --rbind "$1" ".$1"
}`

/**
 * Makes all that is bound so far read-only, mount by mount: `ro` on a folder leaves what is mounted in
 * it as it was. Flags that the system has locked are repeated. What was mounted where the new root is
 * now has another parent, and devices and /proc need no lock.
 */
const lockBound = `mounts=$(cat /proc/self/mountinfo)
while read -r id parent _ _ path flags _; do
  [ "$path" = "$PWD" ] && ours=" $id " && continue
  case "$ours" in *" $parent "*) ours="$ours$id " ;; *) continue ;; esac
  case "$path" in *\\\\*) path=$(printf '%b' "$path") ;; esac
  case "\${path#"$PWD"/}" in tmp|proc|dev/null|dev/zero|dev/random|dev/urandom) continue ;; esac
  [ ! -e "$path" ] || mount -o "remount,bind,ro\${flags#r[wo]}" "$path"
done <<END
$mounts
END`
