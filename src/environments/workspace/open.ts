import { z } from 'zod'
import { containerWorkspaces } from '../../workspace/container.ts'
import { usualLimits, type WorkspaceLimits, type Workspaces } from '../../workspace/contract.ts'
import { localWorkspaces } from '../../workspace/local.ts'
import { remoteWorkspaces } from '../../workspace/remote.ts'

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
  /** Processes at one time, where the system bounds them. @default 128 */
  readonly processes?: number | undefined
  /** `none` accepts that nothing keeps commands from this machine. @default 'required' */
  readonly walls?: 'required' | 'none' | undefined
  /** A folder of programs that can be read inside; its `bin` comes first in PATH. @default none */
  readonly toolchain?: string | undefined
  /** Where they are: a container engine, another machine, or workspaces of your own. @default within walls of this machine */
  readonly sandbox?: 'docker' | 'podman' | Workspaces | undefined
}

/** The options of a workspace as they are written behind an environment's name. */
export const workspaceOptions = z.strictObject({
  seconds: z.coerce.number().positive().max(86_400).optional(),
  memory: z.coerce.number().int().min(256).max(262_144).optional(),
  disk: z.coerce.number().int().min(1).max(1_048_576).optional(),
  walls: z.enum(['required', 'none']).optional(),
  toolchain: z.string().min(1).optional(),
  /** A container engine, or the address of a sandbox server. */
  sandbox: z
    .union([z.enum(['docker', 'podman']), z.url({ protocol: /^https?$/ })], {
      error: 'docker, podman or the address of a sandbox server',
    })
    .optional(),
  /** The variable of the process that holds the key of a sandbox server. */
  'key-variable': z.string().min(1).optional(),
})

/** Options as an environment takes them: a sandbox address becomes workspaces on that server. */
export async function reachWorkspaces<Named extends z.output<typeof workspaceOptions>>({
  sandbox,
  'key-variable': variable,
  ...rest
}: Named): Promise<Omit<Named, 'sandbox' | 'key-variable'> & Pick<WorkspaceOptions, 'sandbox'>> {
  if (sandbox === undefined) return rest
  if (sandbox === 'docker' || sandbox === 'podman') return { ...rest, sandbox }
  const key = variable === undefined ? undefined : process.env[variable]
  if (variable !== undefined && !key) throw new Error(`the variable ${variable} is not set`)
  return { ...rest, sandbox: await remoteWorkspaces({ url: sandbox, key }) }
}

/** Opens the source of workspaces; throws if nothing can isolate them. */
export function openWorkspaces(options: WorkspaceOptions): {
  readonly workspaces: Workspaces
  readonly limits: WorkspaceLimits
} {
  const { walls, sandbox, toolchain, ...given } = options
  const entries = Object.entries(given).filter(([, value]) => value !== undefined)
  const limits: WorkspaceLimits = { ...usualLimits, ...Object.fromEntries(entries) }
  if (typeof sandbox === 'object') return { workspaces: sandbox, limits }
  if (sandbox) return { workspaces: containerWorkspaces({ engine: sandbox, limits }), limits }
  const workspaces = localWorkspaces({ limits, toolchain, ...(walls && { walls }) })
  return { workspaces, limits }
}
