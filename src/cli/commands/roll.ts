import type { Group } from '../../core/group.ts'
import type { RunRecord } from '../../run/open-run-folder.ts'
import { resolveSettings } from '../../settings/config.ts'
import type { SettingName, Settings } from '../../settings/settings.ts'
import { claimRunFolder } from '../../store/run-folder.ts'
import type { Command, Invocation } from '../command.ts'
import { dryRunFlag, isDryRun, printPlan } from '../dry-run.ts'
import { countsRecord, groupLine, groupRecord } from '../group-line.ts'
import { rollBySettings } from '../rolling.ts'

/** The settings of everything that rolls. */
export const rollSettings: readonly SettingName[] = [
  'policy',
  'environment',
  'agent',
  'tasks',
  'split',
  'group',
  'strategy',
  'branch',
  'leaves',
  'stepHistory',
  'weighting',
  'condense',
  'reward',
  'judge',
  'filters',
  'guards',
  'advantage',
  'model',
  'servedModel',
  'offline',
  'hub',
  'keyVariable',
  'record',
  'maxTurns',
  'maxRolloutTokens',
  'maxContext',
  'maxNewTokens',
  'maxSeconds',
  'onLength',
  'temperature',
  'topP',
  'topK',
  'minP',
  'topLogprobs',
  'stop',
  'history',
  'templateVariables',
  'toolFormat',
  'reasoningFormat',
  'markers',
  'toolInstruction',
  'concurrency',
  'adaptive',
  'keep',
  'overSample',
  'refill',
  'deadline',
  'retries',
  'budget',
  'unfinished',
  'seed',
  'sinks',
  'sentinels',
  'metricsPort',
  'traces',
  'notify',
  'out',
]

/** Rolls groups into a run folder. */
export const rollCommand: Command = {
  name: 'roll',
  summary: 'Roll groups of attempts into a run folder',
  usage: '--policy URI --environment NAME --tasks FILE|N',
  about:
    'Rolls a group of attempts for every task and keeps every token, log-probability, reward and\n' +
    'reason in a run folder. Prints one line per group; with --json one JSON object per group.',
  examples: [
    'espalier roll --policy sglang:http://localhost:30000 --environment calculator --tasks 64 --group 8',
    'espalier roll --policy scripted:answers.jsonl --environment ./shop.ts#shop --tasks tasks.jsonl',
  ],
  settings: rollSettings,
  readsConfig: true,
  own: dryRunFlag,
  isCommon: true,
  words: [0, 0],
  run: runRoll,
}

async function runRoll(invocation: Invocation): Promise<number> {
  const resolved = await resolveSettings(invocation)
  const { values } = resolved
  await using claimed = await claimRunFolder(values.out)
  const { out } = claimed
  if (isDryRun(invocation)) {
    return await printPlan(resolved, invocation, { kind: 'roll', out, names: rollSettings })
  }
  const { unfinished } = values
  return await rollWith(values, { out, kind: 'roll', config: values, unfinished }, invocation)
}

/** Rolls by settings and prints every group. */
export async function rollWith(
  values: Settings,
  record: RunRecord,
  { terminal, signal, json }: Invocation,
): Promise<number> {
  const show = (group: Group): void =>
    terminal.print(json ? JSON.stringify(groupRecord(group)) : groupLine(group))
  const { counts } = await rollBySettings(values, record, { terminal, signal, show })
  terminal.tell(`next  espalier show ${record.out}`)
  if (json) terminal.print(JSON.stringify({ run: record.out, ...countsRecord(counts) }))
  return counts.rewards === 0 && counts.done > 0 ? 1 : 0
}
