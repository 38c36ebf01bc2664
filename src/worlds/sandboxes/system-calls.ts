import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** The numbers of system calls on a kind of processor, and how the kernel names it. */
interface Processor {
  readonly name: number
  readonly socket: number
  readonly keys: readonly [keyctl: number, add: number, request: number]
  readonly prctl: number
  readonly seccomp: number
}

const processors: Readonly<Partial<Record<NodeJS.Architecture, Processor>>> = {
  x64: { name: 0xc000003e, socket: 41, keys: [250, 248, 249], prctl: 157, seccomp: 317 },
  arm64: { name: 0xc00000b7, socket: 198, keys: [219, 217, 218], prctl: 167, seccomp: 277 },
}

/** It makes sockets as well, beside the call that makes them. */
const ioUringSetup = 425

/** Unix, IPv4, IPv6, and netlink, which asks for one's own addresses; a network namespace holds all of them. */
const families = [1, 2, 10, 16]

const load = (offset: number): Step => ({ code: 0x20, value: offset })
const give = (value: number): Step => ({ code: 0x06, value })
const allowed = give(0x7fff0000)
const refusedWith = (error: number): Step => give(0x00050000 | error)
const noSuchCall = 38
const noSuchFamily = 97

/** One instruction of the kernel's filters; jumps count the steps that are passed over. */
interface Step {
  readonly code: number
  readonly value: number
  readonly isTrue?: number
  readonly isFalse?: number
}

/**
 * The filter that every process inside runs under: sockets of known families only, since others (such as those to
 * the machine's host) are in no namespace; no keyrings, which the kernel shares between attempts; and no calls in
 * the numbers of another kind of processor, which would pass by.
 */
function filterBytes(architecture = process.arch): Buffer | undefined {
  const processor = processors[architecture]
  if (!processor) return undefined
  const { name, socket, keys } = processor
  const refused = [ioUringSetup, ...keys]
  const steps: Step[] = [
    load(4),
    { code: 0x15, value: name, isTrue: 1 },
    refusedWith(noSuchCall),
    load(0),
    // Numbers of the x32 kind.
    { code: 0x35, value: 0x40000000, isTrue: refused.length + 1 },
    ...refused.map((value, at) => ({ code: 0x15, value, isTrue: refused.length - at })),
    { code: 0x15, value: socket, isTrue: 2, isFalse: 1 },
    refusedWith(noSuchCall),
    allowed,
    load(16),
    ...families.map((value, at) => ({ code: 0x15, value, isTrue: families.length - at })),
    refusedWith(noSuchFamily),
    allowed,
  ]
  const bytes = Buffer.alloc(8 * steps.length)
  for (const [at, { code, value, isTrue = 0, isFalse = 0 }] of steps.entries()) {
    bytes.writeUInt16LE(code, 8 * at)
    bytes.writeUInt8(isTrue, 8 * at + 2)
    bytes.writeUInt8(isFalse, 8 * at + 3)
    bytes.writeUInt32LE(value, 8 * at + 4)
  }
  return bytes
}

/** Joins a new session keyring, takes on the filter, and becomes the command. */
const program = `my ($filter, $keyctl, $prctl, $seccomp, @command) = @ARGV;
my $bytes = pack('H*', $filter);
syscall($keyctl + 0, 1, 0);
syscall($prctl + 0, 38, 1, 0, 0, 0);
syscall($seccomp + 0, 1, 0, pack('S x6 P', length($bytes) / 8, $bytes)) == 0 or exit 126;
exec { $command[0] } @command or exit 127`

/** The words that stand before a command so that it runs under the filter, if there is a Perl to do it. */
export function filterWords(): readonly string[] {
  const processor = processors[process.arch]
  const bytes = filterBytes()
  if (!processor || !bytes) return []
  const { keys, prctl, seccomp } = processor
  return ['perl', '-e', program, bytes.toString('hex'), ...[keys[0], prctl, seccomp].map(String)]
}

/** What tells whether the filter holds: errors of a known and of an unknown socket, and of the keyrings. */
export function filterProbe(): readonly string[] {
  const [keyctl] = processors[process.arch]?.keys ?? [0]
  const script = `sub told { $_[0] ? 0 : $! + 0 }
    print join(' ', told(socket(A, 2, 1, 0)), told(socket(B, 40, 1, 0)), told(syscall(${keyctl}, 0, -3, 0) > 0))`
  return ['perl', '-e', script]
}

/** What the probe prints if it does. */
export const filterHolds = `0 ${noSuchFamily} ${noSuchCall}`

let file: string | undefined

/** The words that hand the filter to bubblewrap, as a file that is written once. */
export function bubblewrapFilter(bwrap: readonly string[]): readonly string[] {
  const bytes = filterBytes()
  if (!bytes) return bwrap
  if (file === undefined) {
    file = join(mkdtempSync(join(tmpdir(), 'espalier-filter-')), 'filter')
    writeFileSync(file, bytes)
  }
  const [first, ...words] = bwrap
  const script = 'exec 9<"$0" "$@"'
  return ['/bin/sh', '-c', script, file, first!, '--seccomp', '9', ...words]
}
