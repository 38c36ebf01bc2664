import type { Call } from '../core/call.ts'
import type { Isolation } from '../core/environment.ts'
import type { Finished } from '../sandbox/run.ts'

/** What bounds the commands of a workspace. */
export interface WorkspaceLimits {
  /** Seconds a command may take where nothing else is said. */
  readonly seconds: number
  /** Mebibytes of memory: of each process within walls of the system, of all in a container. */
  readonly memory: number
  /** Bytes kept of a command's output, and of its complaints. */
  readonly outputBytes: number
  /** Processes at one time, where the system bounds them. */
  readonly processes: number
  /** Mebibytes that all files may take together. */
  readonly disk: number
}

/** The limits where nothing else is said. */
export const usualLimits: WorkspaceLimits = {
  seconds: 30,
  memory: 4096,
  outputBytes: 20_000,
  processes: 128,
  disk: 512,
}

/** The folder inside that an attempt begins in where nothing else is said; at the top, so that it can be put anew. */
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
  /** Puts a folder of this machine at the top; whatever was there is gone. */
  put(put: Put, call: Call): Promise<void>
  /** A copy that goes its own way from here. */
  fork(call: Call): Promise<Workspace>
}

/** A way to keep workspaces apart: walls of the system, containers, another machine. */
export interface Workspaces extends AsyncDisposable {
  readonly name: string
  readonly isolation: Isolation
  /** It makes workspaces from images, so that nobody follows a Dockerfile for it. */
  readonly buildsImages?: true
  open(source: WorkspaceSource, call: Call): Promise<Workspace>
}

/** Thrown where the place a workspace lives in broke, not what ran inside. */
export class WorkspaceError extends Error {
  override name = 'WorkspaceError'
}
