import { containerWorkspaces } from '../container.ts'
import { usualLimits, type WorkspaceLimits, type Workspaces } from '../contract.ts'
import { localWorkspaces } from '../local.ts'

/** Where workspaces are, and what bounds them. */
export interface WorkspaceOptions {
  /** Seconds that a command may take. @default 30 */
  readonly seconds?: number | undefined
  /** Mebibytes of memory of each process. @default 4096 */
  readonly memory?: number | undefined
  /** Mebibytes of files. @default 512 */
  readonly disk?: number | undefined
  /** Bytes of a command's output that are shown. @default 20000 */
  readonly outputBytes?: number | undefined
  /** Processes at one time, if the system bounds them. @default 128 */
  readonly processes?: number | undefined
  /** `none` accepts that nothing keeps commands from this machine. @default 'required' */
  readonly walls?: 'required' | 'none' | undefined
  /** A folder of programs that can be read inside; its `bin` comes first in PATH. @default none */
  readonly toolchain?: string | undefined
  /** Where they are: a container engine, another machine, or workspaces of your own. @default within walls of this machine */
  readonly sandbox?: 'docker' | 'podman' | Workspaces | undefined
}

/** Opens the source of workspaces; throws if nothing can isolate them. */
export function openWorkspaces(options: WorkspaceOptions): {
  readonly workspaces: Workspaces
  readonly limits: WorkspaceLimits
} {
  const { walls, sandbox, toolchain } = options
  const limits = limitsOf(options)
  if (typeof sandbox === 'object') return { workspaces: sandbox, limits }
  if (sandbox) return { workspaces: containerWorkspaces({ engine: sandbox, limits }), limits }
  const workspaces = localWorkspaces({ limits, toolchain, ...(walls && { walls }) })
  return { workspaces, limits }
}

/** The limits that options name, and the usual ones. */
export function limitsOf(
  options: {
    readonly [Name in keyof WorkspaceLimits]?: number | undefined
  },
): WorkspaceLimits {
  const given = Object.keys(usualLimits).flatMap(name => {
    const limit: unknown = Reflect.get(options, name)
    return limit === undefined ? [] : [[name, limit] as const]
  })
  return { ...usualLimits, ...Object.fromEntries(given) }
}
