import { type Audit, auditRun } from '../../learn/learn/audit.ts'
import { openNamed } from '../../run/settings/open-named.ts'
import { openPolicy } from '../../run/settings/open-policy.ts'
import { readManifest } from '../../run/store/run-folder.ts'
import { type Command, type Invocation, MisuseError } from '../command.ts'

/** Compares recorded log-probabilities with the policy's own. */
export const auditCommand: Command = {
  name: 'audit',
  usage: 'RUN --policy URI',
  about:
    'Scores every row of a run with the policy that sampled it and compares the log-probability of\n' +
    'each trained token with the recorded one: a shifted mask, a lost separator or a wrong version\n' +
    "shows here. Rows of older weights are checked with the run's checkpoints, and counted where\n" +
    'there is none.',
  examples: ['espalier audit runs/0001 --policy embedded'],
  settings: [],
  own: {
    policy: { help: 'The policy to score with', argument: 'URI' },
    tolerance: {
      help: 'How far a log-probability may be off (default: 1e-4 embedded, 0.05 elsewhere)',
      argument: 'T',
    },
  },
  positionalCount: [1, 1],
  run: runAudit,
}

async function runAudit(invocation: Invocation): Promise<number> {
  const { positionals: words, own, json, terminal, signal } = invocation
  const { policy: uri } = own
  if (!uri) throw new MisuseError('audit needs --policy URI')
  const tolerance = own.tolerance === undefined ? undefined : Number(own.tolerance)
  if (tolerance !== undefined && !(tolerance >= 0)) {
    throw new MisuseError(`--tolerance takes a number, not "${own.tolerance}"`)
  }
  await using policy = await openNamed(`--policy ${uri}`, () => openPolicy(uri))
  const audit = await auditRun(words[0]!, policy, {
    signal,
    onRow: ({ rows }) => terminal.status(`${rows} rows`),
    ...(tolerance !== undefined && { tolerance }),
  }).catch(async (error: unknown) => {
    const rolledWith = [(await readManifest(words[0]!)).config.policy].flat().join(' ')
    if (rolledWith && rolledWith !== uri)
      terminal.tell(`the run was rolled with --policy ${rolledWith}`)
    throw error
  })
  if (json) terminal.print(JSON.stringify(audit))
  else for (const line of auditLines(audit)) terminal.print(line)
  return audit.wrong === 0 && audit.checked > 0 ? 0 : 1
}

function verdictOf({ checked, wrong, tolerance }: Audit): string {
  if (checked === 0) return 'nothing could be checked'
  if (wrong === 0) return `all within ${tolerance}`
  return `${wrong} tokens are further off than ${tolerance}; the worst:`
}

function auditLines(audit: Audit): readonly string[] {
  const { rows, tokens, checked, unchecked, largest, mean, worst } = audit
  return [
    `${rows} rows, ${tokens} trained tokens, ${checked} checked`,
    ...Object.entries(unchecked).map(([reason, count]) => `not checked: ${count} (${reason})`),
    `largest difference ${largest.toExponential(2)}, mean ${mean.toExponential(2)}`,
    verdictOf(audit),
    ...worst.map(
      each =>
        `  ${each.trajectory} row ${each.row} token ${each.token}: ` +
        `recorded ${each.recorded.toFixed(6)}, recomputed ${each.recomputed.toFixed(6)}`,
    ),
  ]
}
