import { z } from 'zod'
import { remoteWorkspaces } from '../remote.ts'
import type { WorkspaceOptions } from './open.ts'

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
