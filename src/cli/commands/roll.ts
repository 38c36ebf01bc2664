import { resolveSettings } from '../../run/config.ts'
import { openRunParts } from '../../run/open-run.ts'
import { type RunRecord, rollIntoRun } from '../../run/rolling.ts'
import { nextRunFolder } from '../../run/run-folder.ts'
import type { SettingName, Settings } from '../../run/settings.ts'
import type { Command, Invocation } from '../command.ts'
import { countsRecord, groupLine, groupRecord } from '../group-line.ts'
import { openProgress } from '../progress.ts'

/** The settings of everything that rolls. */
export const rollSettings: readonly SettingName[] = [
  'policy',
  'environment',
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
  'toolInstruction',
  'concurrency',
  'deadline',
  'retries',
  'budget',
  'unfinished',
  'seed',
  'sinks',
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
  isCommon: true,
  words: [0, 0],
  run: runRoll,
}

async function runRoll(invocation: Invocation): Promise<number> {
  const { values } = await resolveSettings(invocation)
  const out = values.out ?? (await nextRunFolder())
  const { unfinished } = values
  return await rollWith(values, { out, kind: 'roll', config: values, unfinished }, invocation)
}

/** Rolls by settings into a run folder, showing how it goes. */
export async function rollWith(
  values: Settings,
  record: RunRecord,
  { terminal, signal, json }: Invocation,
): Promise<number> {
  const opened = await openRunParts(values, terminal.tell)
  const tasks = values.tasks ?? defaultTasks
  const total = typeof tasks === 'number' ? tasks * values.group : undefined
  const progress = openProgress(terminal, total)
  try {
    const parts = { ...opened.parts, signal, listen: progress.listen }
    for await (const group of rollIntoRun(tasks, parts, record)) {
      terminal.print(json ? JSON.stringify(groupRecord(group)) : groupLine(group))
    }
  } finally {
    await opened[Symbol.asyncDispose]()
  }
  terminal.tell(progress.summary())
  const { stopped } = progress.counts
  if (stopped)
    terminal.tell(`stopped: ${stopped}; \`espalier resume ${record.out} --budget JSON\` goes on`)
  terminal.tell(`next  espalier show ${record.out}`)
  if (json) terminal.print(JSON.stringify({ run: record.out, ...countsRecord(progress.counts) }))
  return progress.counts.rewards === 0 && progress.counts.done > 0 ? 1 : 0
}

const defaultTasks = 16
