import { count, percent } from '../../base/core/names/units.ts'
import { readByTask } from '../../run/measure/compare.ts'
import { type Comparison, compareRuns, type Difference } from '../../run/measure/compare-tasks.ts'
import { type Command, type Invocation, MisuseError } from '../command.ts'

/** Compares runs task by task. */
export const compareCommand: Command = {
  name: 'compare',
  usage: 'RUN[@PART] RUN[@PART]…',
  about:
    'Compares every further run with the first on the tasks they share: mean differences of success,\n' +
    'reward and sampled tokens with the bounds that hold them at 95 %, and the tasks that were gained\n' +
    'and lost. Attempts count as in eval. Of a training run a part is named: @before, @after or @STEP\n' +
    'for its held-out tasks at that step, @training for what it learned from. With --fail-below the\n' +
    'exit code is 1 where success surely changed by less, that is, by its upper bound.',
  examples: [
    'espalier compare runs/0001 runs/0002',
    'espalier compare runs/0003@before runs/0003@after',
    'espalier compare runs/before runs/after --fail-below -0.02',
  ],
  settings: [],
  own: {
    'fail-below': {
      help: 'Exit 1 where even the upper bound of the change of success is below this',
      argument: 'DIFFERENCE',
    },
    'success-at': {
      help: 'The reward from which on an attempt counts as a success',
      argument: 'REWARD',
    },
  },
  positionalCount: [2, 100],
  run: runCompare,
}

async function runCompare({
  positionals: words,
  own,
  terminal,
  json,
}: Invocation): Promise<number> {
  const limit = readNumber('fail-below', own['fail-below'])
  const successAt = readNumber('success-at', own['success-at'])
  const options = successAt === undefined ? {} : { successAt }
  const base = await readByTask(words[0]!, options)
  let isBelow = false
  for (const word of words.slice(1)) {
    const comparison = compareRuns(base, await readByTask(word, options))
    if (json) terminal.print(JSON.stringify(comparison))
    else for (const line of comparisonLines(comparison)) terminal.print(line)
    if (limit === undefined || comparison.success.high >= limit) continue
    isBelow = true
    terminal.tell(
      `${word}: success changed by ${range(comparison.success)}, which is below ${limit}`,
    )
  }
  return isBelow ? 1 : 0
}

function readNumber(flag: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const number = Number(text)
  if (text.trim() !== '' && Number.isFinite(number)) return number
  throw new MisuseError(`--${flag} takes a number, not "${text}"`)
}

function comparisonLines(comparison: Comparison): readonly string[] {
  const { base, run, tasks, unpaired, success, reward, tokens, gained, lost } = comparison
  const left = unpaired > 0 ? `, ${unpaired} only in one of them` : ''
  return [
    `${run} against ${base}: ${count(tasks)} tasks in both${left}`,
    `  success  ${percent(success.before)} → ${percent(success.after)}  ${range(success)}`,
    `  reward   ${reward.before.toFixed(3)} → ${reward.after.toFixed(3)}  ${range(reward)}`,
    `  tokens   ${count(tokens.before)} → ${count(tokens.after)}  ${range(tokens, 1)}`,
    `  gained   ${gained.length}${some(gained)}`,
    `  lost     ${lost.length}${some(lost)}`,
  ]
}

function range({ difference, low, high }: Difference, digits = 3): string {
  const bounds = Number.isFinite(high - low)
    ? `${signed(low, digits)} to ${signed(high, digits)}`
    : 'no bounds: one task, or all alike'
  return `${signed(difference, digits)} (${bounds})`
}

function signed(value: number, digits = 3): string {
  return `${value < 0 ? '' : '+'}${value.toFixed(digits)}`
}

function some(tasks: readonly string[]): string {
  if (tasks.length === 0) return ''
  return `: ${tasks.slice(0, 8).join(', ')}${tasks.length > 8 ? ', …' : ''}`
}
