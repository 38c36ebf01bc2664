import { commandLine } from '../../base/core/names/program-name.ts'
import { percent } from '../../base/core/names/units.ts'
import { type Survey, type SurveyArm, survey } from '../../run/measure/survey.ts'
import { rollOptionsOf } from '../../run/run/roll-options.ts'
import { resolveSettings } from '../../run/settings/config.ts'
import { needed } from '../../run/settings/open-named.ts'
import type { SettingName, Settings } from '../../run/settings/settings.ts'
import type { Command, Invocation } from '../command.ts'

/** The settings of attempts; what is learned with, kept or watched is another's. */
const taken: readonly SettingName[] = [
  ...([
    'policy',
    'environment',
    'tasks',
    'split',
    'group',
    'shots',
    'demonstrations',
    'seed',
  ] as const),
  ...(['temperature', 'topP', 'topK', 'minP', 'stop', 'reward'] as const),
  ...([
    'maxTurns',
    'maxRolloutTokens',
    'maxContext',
    'maxNewTokens',
    'maxSeconds',
    'onLength',
  ] as const),
  ...([
    'model',
    'servedModel',
    'keyVariable',
    'offline',
    'device',
    'hub',
    'toolFormat',
    'reasoningFormat',
  ] as const),
  ...([
    'templateVariables',
    'toolInstruction',
    'concurrency',
    'retries',
    'deadline',
    'judge',
  ] as const),
]

/** Says what a policy makes of an environment before anything is trained. */
export const surveyCommand: Command = {
  name: 'survey',
  usage: '--policy URI --environment NAME',
  about:
    'Attempts some tasks without examples and, with --shots, behind them; says how often each way solves\n' +
    'them, drawn and greedily, how many groups have contrast, what an attempt costs, whether form or\n' +
    'strategy fails, and which learning rate, group and minutes training would probably need.',
  examples: [
    'espalier survey --policy embedded:models/small --environment calc2 --shots 2 --stop "\\n" --max-new-tokens 12 --on-length continue',
    'espalier survey --policy sglang:http://localhost:30000 --environment ./shop.ts#shop --tasks tasks.jsonl --json',
  ],
  settings: taken,
  defaults: { tasks: 16, group: 4 },
  readsConfig: true,
  keepsNothing: true,
  positionalCount: [0, 0],
  run: runSurvey,
}

async function runSurvey(invocation: Invocation): Promise<number> {
  const { terminal, json, flags, signal } = invocation
  const { values } = await resolveSettings(invocation)
  const { tasks = 16 } = values
  if (!json) terminal.print(headLine)
  const found = await survey(needed(values, 'environment'), tasks, {
    ...rollOptionsOf({ ...values, sinks: [], filters: [] }),
    group: flags.group ?? 4,
    signal,
    tell: terminal.tell,
    onArm: arm => {
      if (!json) terminal.print(armLine(arm))
    },
  })
  if (json) terminal.print(JSON.stringify(found))
  else for (const line of adviceLines(found, values)) terminal.print(line)
  return 0
}

const columns = [
  'examples',
  'success (95 %)',
  'greedy',
  'contrast',
  'tokens',
  'turns',
  'fails: form, strategy',
]
const widths = [10, 22, 9, 10, 9, 7, 22]

const row = (cells: readonly string[]): string =>
  cells
    .map((cell, index) => cell.padEnd(widths[index]!))
    .join('')
    .trimEnd()

const headLine = row(columns)

function armLine({
  shots,
  success,
  interval,
  greedy,
  contrast,
  tokens,
  turns,
  fails,
}: SurveyArm): string {
  return row([
    String(shots),
    `${percent(success)} (${percent(interval.low)} to ${percent(interval.high)})`,
    percent(greedy),
    percent(contrast),
    tokens.toFixed(1),
    turns.toFixed(1),
    `${percent(fails.format)}, ${percent(fails.strategy)}`,
  ])
}

function adviceLines({ arms, advice, policy }: Survey, values: Settings): readonly string[] {
  const { verdict, shots, group, contrast, learningRate, steps, minutes } = advice
  const example = arms.at(-1)!.example
  const asked = ['--policy', policy, '--environment', String(values.environment)]
  const shown = shots > 0 ? ['--shots', String(shots)] : []
  const from =
    values.demonstrations === undefined || shots === 0
      ? []
      : ['--demonstrations', String(values.demonstrations)]
  const more = [
    '--group',
    String(group),
    '--learning-rate',
    String(learningRate),
    '--steps',
    String(steps),
  ]
  return [
    ...(example === undefined ? [] : [`a failed attempt ended with: ${example}`]),
    `${verdict}. Groups of ${group} would have contrast in ${percent(contrast)}; ${steps} steps of 8 groups take about ` +
      `${minutes.toFixed(minutes < 10 ? 1 : 0)} minutes here if learning takes as long as sampling`,
    `next  ${commandLine('train', ...asked, ...shown, ...from, '--tasks-per-step', '8', ...more)}`,
  ]
}
