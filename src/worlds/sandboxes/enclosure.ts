/** What a process inside can use, whichever builder is used. */
export interface Enclosed {
  /** Paths that can be read inside, at the same place; none can be written. */
  readonly readable: readonly string[]
  /** Folders that can be written inside, at the same place. */
  readonly writable: readonly string[]
  /** Folders that can be written inside, at another place than here. */
  readonly binds?: readonly Bind[]
  /** Whether the network outside can be reached. */
  readonly hasNetwork: boolean
  readonly workingFolder: string
  readonly limits: Limits
}

/** A folder of this machine, and where it is inside. */
export interface Bind {
  readonly from: string
  readonly to: string
}

/** Limits that the operating system enforces, out of reach of hostile code. */
export interface Limits {
  /** Mebibytes of address space of each process, and of what all use together, if a control group can be made. */
  readonly memory?: number
  /** Set for programs that reserve far more addresses than they use: only what all use together is bounded. */
  readonly addresses?: 'unbounded'
  /** CPU seconds of each process. */
  readonly cpu?: number
  /** Processes and threads at one time. */
  readonly processes?: number
  /** Mebibytes that each file may grow to; 0: nothing is written. */
  readonly fileSize?: number
  /** Mebibytes of `/tmp` inside, which lie in memory. @default 256 */
  readonly temporary?: number
}

/** Programs and their libraries; if one of them does not exist it is left out. */
export const systemFolders = ['/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64', '/nix/store']

/** Where the kernel lists the keys of a user, in whatever namespace. */
export const namesOfKeys = ['/proc/keys', '/proc/key-users']

/** A word as a shell reads it. */
export function quote(word: string): string {
  return `'${word.replaceAll("'", "'\\''")}'`
}

/** The words that set limits and give up every privilege, before a command. */
export function boundWords(limits: Limits): readonly string[] {
  const { cpu, processes, fileSize } = limits
  const memory = limits.addresses === 'unbounded' ? undefined : limits.memory
  return [
    'prlimit',
    '--core=0',
    ...(memory === undefined ? [] : [`--as=${Math.round(memory * 2 ** 20)}`]),
    ...(cpu === undefined ? [] : [`--cpu=${cpu}:${cpu + 1}`]),
    ...(processes === undefined ? [] : [`--nproc=${processes}`]),
    ...(fileSize === undefined ? [] : [`--fsize=${Math.round(fileSize * 2 ** 20)}`]),
  ]
}
