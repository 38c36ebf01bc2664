import { z } from 'zod'
import { openSandbox } from './kinds.ts'
import { limitsOf, type WorkspaceOptions } from './open.ts'

/** The options of a workspace as they are written behind an environment's name. */
export const workspaceOptions = z.strictObject({
  seconds: z.coerce.number().positive().max(86_400).optional(),
  memory: z.coerce.number().int().min(256).max(262_144).optional(),
  disk: z.coerce.number().int().min(1).max(1_048_576).optional(),
  walls: z.enum(['required', 'none']).optional(),
  toolchain: z.string().min(1).optional(),
  /** Where workspaces are: `KIND[:ITEM,…]`, as `openSandbox` reads it. */
  sandbox: z.string().min(1).optional(),
  /** The variable of the process that holds the key of a sandbox server. */
  'key-variable': z.string().min(1).optional(),
})

/** Options as an environment takes them: a sandbox that is named becomes its workspaces. */
export async function reachWorkspaces<Named extends z.output<typeof workspaceOptions>>({
  sandbox,
  'key-variable': variable,
  ...rest
}: Named): Promise<Omit<Named, 'sandbox' | 'key-variable'> & Pick<WorkspaceOptions, 'sandbox'>> {
  if (sandbox === undefined) return rest
  const named = variable === undefined ? sandbox : `${sandbox},key-variable=${variable}`
  return { ...rest, sandbox: await openSandbox(named, limitsOf(rest)) }
}
