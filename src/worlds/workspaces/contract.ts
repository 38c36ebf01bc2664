import type { Call } from '../../base/core/call.ts'
import type { Isolation } from '../../base/core/environment.ts'
import type { Finished, StartedCommand } from '../sandboxes/run.ts'

/** What bounds the commands of a workspace. */
export interface WorkspaceLimits {
  /** Seconds that a command may take by default. */
  readonly seconds: number
  /** Mebibytes of memory: of each process within walls of the system, of all in a container. */
  readonly memory: number
  /** Bytes kept of a command's output, and of its complaints. */
  readonly outputBytes: number
  /** Processes at one time, if the system bounds them. */
  readonly processes: number
  /** Mebibytes that all files may take together. */
  readonly disk: number
}

/** The default limits. */
export const usualLimits: WorkspaceLimits = {
  seconds: 30,
  memory: 4096,
  outputBytes: 20_000,
  processes: 128,
  disk: 512,
}

/** Throws for a limit that is no number above 0, as code without types may give one. */
export function checkLimits(limits: WorkspaceLimits): void {
  for (const name of Object.keys(usualLimits)) {
    const limit: unknown = Reflect.get(limits, name)
    if (typeof limit === 'number' && limit > 0 && limit < Number.POSITIVE_INFINITY) continue
    throw new RangeError(`limits.${name} of a workspace is ${limit}; it is a number above 0.`)
  }
}

/** The default working folder inside; at the top level, so that it can be replaced with `put`. */
export const usualFolder = '/agent'

/** A folder of this machine that is put at a path inside. */
export interface Put {
  readonly from: string
  /** From the root; a folder at the top, or one inside it. */
  readonly to: string
}

/** What a workspace begins with. */
export interface WorkspaceSource {
  readonly puts: readonly Put[]
  readonly workingFolder: string
  /** Variables of every command. */
  readonly variables?: Readonly<Record<string, string>> | undefined
  /** What a container is made from: its image, or the folder of a Dockerfile. */
  readonly image?: { readonly name: string } | { readonly build: string }
  /** @default 'none' */
  readonly network?: 'none' | 'outside' | undefined
  /** Paths of this machine that can be read inside at the same place, if the workspaces are on it (`Workspaces.shows`). */
  readonly shown?: readonly string[] | undefined
}

/** How a command is run. */
export interface CommandCall extends Call {
  readonly input?: string | Uint8Array
  readonly seconds?: number | undefined
  readonly variables?: Readonly<Record<string, string>> | undefined
}

/** Folders and commands of one attempt, apart from this machine and from every other attempt. */
export interface Workspace extends AsyncDisposable {
  /** Runs a command to its end, or until its time is over; what it leaves running ends with it. */
  run(command: readonly string[], call: CommandCall): Promise<Finished>
  /**
   * Starts a command that is talked to; aborting the call ends it with all that it started. A harness needs
   * this, or a network from which it reaches its gateway.
   */
  start?(command: readonly string[], call: Omit<CommandCall, 'input'>): StartedCommand
  /** Puts a folder of this machine at the top; whatever was there is gone. */
  put(put: Put, call: Call): Promise<void>
  /** A copy that goes its own way from here. */
  fork(call: Call): Promise<Workspace>
  /** What was used until now, if somebody has to be paid for it. */
  use?(): WorkspaceUse
}

/** What a workspace of a vendor used: reports of attempts have it as `sandbox`. */
export type WorkspaceUse = {
  readonly vendor: string
  /** From its start, without the time it was paused. */
  readonly seconds: number
  /** In the currency of the price that was named, if one was. */
  readonly cost?: number
}

/** The part of a report that says what a workspace used. */
export function useOf(workspace: Workspace): { readonly sandbox?: WorkspaceUse } {
  return workspace.use ? { sandbox: workspace.use() } : {}
}

/** A way to isolate workspaces: walls of the system, containers, another machine. */
export interface Workspaces extends AsyncDisposable {
  readonly name: string
  readonly isolation: Isolation
  /** Set if it builds images itself, so that no Dockerfile has to be interpreted here. */
  readonly buildsImages?: true
  /** Set if commands can be talked to while they run (`Workspace.start`), as harnesses need. */
  readonly talks?: true
  /** Set if they are on this machine, so that a source can show paths of it. */
  readonly shows?: true
  open(source: WorkspaceSource, call: Call): Promise<Workspace>
}

/** Thrown if the workspace itself failed, not the command inside it. */
export class WorkspaceError extends Error {
  override name = 'WorkspaceError'
}

/** Thrown for what no workspace of its kind can do: a mistake of whoever asks, not of the workspace. */
export class ImpossibleError extends WorkspaceError {
  override name = 'ImpossibleError'
}
