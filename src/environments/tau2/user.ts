import type { Tau2Domain } from './domain.ts'
import { advertised } from './schema.ts'
import type { Tau2Task } from './task.ts'

/**
 * The tools a simulated user has for a task, in the order of the toolkit; `null` for none, which is
 * also what the original makes of a task that names a tool its toolkit lacks.
 */
export function userToolNames(
  { user }: Tau2Domain,
  { userTools }: Tau2Task,
): readonly string[] | null {
  if (user === null) return null
  const all = advertised(user).map(tool => tool.name)
  if (userTools === null) return all
  if (userTools.length === 0 || userTools.some(name => !all.includes(name))) return null
  return all.filter(name => userTools.includes(name))
}
