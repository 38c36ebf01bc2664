import type { ResolvedSettings } from '../settings/config.ts'
import type { SettingName } from '../settings/settings.ts'
import type { Invocation, OwnFlag } from './command.ts'

/** The flag of commands that can say what they would do. */
export const dryRunFlag: Readonly<Record<'dry-run', OwnFlag>> = {
  'dry-run': {
    help: 'Print what would happen, what it would cost and where each setting came from',
  },
}

/** Whether only a plan is wanted. */
export function isDryRun({ own }: Invocation): boolean {
  return own['dry-run'] !== undefined
}

/** Prints the plan of a run instead of beginning it. */
export async function printPlan(
  resolved: ResolvedSettings,
  { terminal, json }: Invocation,
  what: { readonly kind: string; readonly out: string; readonly names: readonly SettingName[] },
): Promise<number> {
  const { planRun } = await import('./plan.ts')
  const { planLines } = await import('./plan-lines.ts')
  const plan = await planRun(resolved, what)
  if (json) terminal.print(JSON.stringify(plan))
  else for (const line of planLines(plan)) terminal.print(line)
  return 0
}
