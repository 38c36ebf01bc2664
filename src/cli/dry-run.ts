import type { ResolvedSettings } from '../run/settings/config.ts'
import { claimRunFolder } from '../run/store/run-folder.ts'
import type { Invocation, OwnFlag } from './command.ts'
import type { Rolled } from './rolling.ts'

/** The flag of commands that can say what they would do. */
export const dryRunFlag: Readonly<Record<'dry-run', OwnFlag>> = {
  'dry-run': {
    help: 'Print what would happen, what it would cost and where each setting came from',
  },
}

/** The commands that can plan a run. */
export type RunKind = 'roll' | 'eval' | 'train'

/** What begins a run: its kind, and how it is run in a folder. */
export interface Beginning {
  readonly kind: RunKind
  run(rolled: Rolled, invocation: Invocation): Promise<number>
}

/** Claims a run folder and begins a run there; prints the plan of it if only that is wanted. */
export async function beginOrPlan(
  resolved: ResolvedSettings,
  invocation: Invocation,
  { kind, run }: Beginning,
): Promise<number> {
  const { values } = resolved
  await using claimed = await claimRunFolder(values.out)
  const { out } = claimed
  if (invocation.own['dry-run'] === undefined) return await run({ values, out }, invocation)
  return await printPlan(resolved, invocation, { kind, out })
}

async function printPlan(
  resolved: ResolvedSettings,
  { terminal, json }: Invocation,
  what: { readonly kind: RunKind; readonly out: string },
): Promise<number> {
  const { planRun } = await import('./plan.ts')
  const { planLines } = await import('./plan-lines.ts')
  const plan = await planRun(resolved, what)
  if (json) terminal.print(JSON.stringify(plan))
  else for (const line of planLines(plan)) terminal.print(line)
  return 0
}
