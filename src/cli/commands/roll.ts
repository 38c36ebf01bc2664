import { commandLine } from '../../base/core/names/program-name.ts'
import { roll } from '../../run/run/roll.ts'
import { rollOptionsOf } from '../../run/run/roll-options.ts'
import { resolveSettings } from '../../run/settings/config.ts'
import { needed } from '../../run/settings/open-named.ts'
import { settingsOf } from '../../run/settings/settings.ts'
import type { Command, Invocation } from '../command.ts'
import { beginOrPlan, dryRunFlag } from '../dry-run.ts'
import { countsRecord, groupLine, groupRecord } from '../group-line.ts'
import { elsewhereOf, type Rolled, warnOfChat, withProgress } from '../rolling.ts'

/** Rolls groups into a run folder. */
export const rollCommand: Command = {
  name: 'roll',
  usage: '--policy URI --environment NAME --tasks FILE|N',
  about:
    'Rolls a group of attempts for every task and keeps every token, log-probability, reward and\n' +
    'reason in a run folder. Prints one line per group; with --json one JSON object per group, and one for the run at the end.',
  examples: [
    'espalier roll --policy sglang:http://localhost:30000 --environment calculator --tasks 64 --group 8',
    'espalier roll --policy scripted:answers.jsonl --environment ./shop.ts#shop --tasks tasks.jsonl',
  ],
  settings: settingsOf('roll'),
  readsConfig: true,
  own: dryRunFlag,
  positionalCount: [0, 0],
  run: runRoll,
}

async function runRoll(invocation: Invocation): Promise<number> {
  const beginning = { kind: 'roll', run: rollWith } as const
  return await beginOrPlan(await resolveSettings(invocation), invocation, beginning)
}

/** Rolls by settings and prints every group. */
export async function rollWith(rolled: Rolled, invocation: Invocation): Promise<number> {
  const { terminal, json } = invocation
  const { values, out } = rolled
  warnOfChat(values, terminal.tell)
  const { counts } = await withProgress(rolled, invocation, async (tasks, shown) => {
    const options = { ...rollOptionsOf(values), ...shown, ...elsewhereOf(values, shown) }
    for await (const group of roll(needed(values, 'environment'), tasks, options)) {
      terminal.print(json ? JSON.stringify(groupRecord(group)) : groupLine(group))
    }
  })
  terminal.tell(`next  ${commandLine('show', out)}`)
  if (json) terminal.print(JSON.stringify({ run: out, ...countsRecord(counts) }))
  return counts.rewards === 0 && counts.done > 0 ? 1 : 0
}
