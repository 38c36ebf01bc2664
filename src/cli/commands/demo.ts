import { isHeldOut } from '../../base/core/group.ts'
import { commandLine } from '../../base/core/names/program-name.ts'
import { type Demo, demoDefaults, runDemo } from '../../learn/learn/demo.ts'
import { runSecondAct, secondActDefaults } from '../../learn/learn/demo-pretrained.ts'
import { flagOf, withoutUndefined } from '../../run/settings/settings.ts'
import { claimRunFolder } from '../../run/store/run-folder.ts'
import type { Listen } from '../../run/watch/events.ts'
import { type Command, type Invocation, MisuseError } from '../command.ts'
import { conversationLines } from '../conversation.ts'
import { curve } from '../show/overview.ts'
import type { Terminal } from '../terminal.ts'
import { makeTrainingDisplay } from '../training-display.ts'

const { tasksPerStep, group, heldOut: _, ...choices } = demoDefaults
const defaults = { ...choices, oracleBonus: 0 }

/** The main job on the embedded default. */
export const demoCommand: Command = {
  name: 'demo',
  usage: '',
  about:
    'Rolls the embedded policy at a service desk, trains it with GRPO on its own trajectories and\n' +
    'evaluates it before and after on 512 held-out tasks at temperature 1. Needs no GPU, key or\n' +
    'download. Ends with one task that it failed before and solved after, and leaves a run folder\n' +
    'with every trajectory. With --policy a pretrained model is the second act: behind two examples it\n' +
    'learns in an adapter to work out sums with a calculator, in 8 steps of 8 tasks.',
  examples: [
    'espalier demo',
    'espalier demo --policy embedded:hf:HuggingFaceTB/SmolLM2-135M-Instruct   # a pretrained model learns to use a calculator',
    'espalier demo --seed 3 --json',
    'espalier demo --max-staleness 1   # samples while it learns',
  ],
  settings: [
    ...['seed', 'steps', 'strategy', 'leaves', 'learningRate', 'oracleBonus'],
    ...['maxStaleness', 'onUpdate', 'out', 'policy', 'offline', 'hub', 'device'],
  ] as const,
  defaults,
  positionalCount: [0, 0],
  run: runDemoCommand,
}

async function runDemoCommand(invocation: Invocation): Promise<number> {
  const { terminal, signal, json, flags } = invocation
  await using claimed = await claimRunFolder(flags.out)
  const { out } = claimed
  if (flags.policy !== undefined) return await runSecond(out, invocation)
  const {
    seed = defaults.seed,
    steps = defaults.steps,
    strategy = defaults.strategy,
    leaves = defaults.leaves,
    learningRate,
    oracleBonus = defaults.oracleBonus,
    maxStaleness,
    onUpdate,
  } = flags
  terminal.tell(
    `A small model serves a desk: ${steps} steps of ${tasksPerStep} tasks, ${group} attempts each; seed ${seed}.`,
  )
  for (const line of words) terminal.tell(line)
  const display = makeTrainingDisplay(terminal, steps)
  const successes: number[] = []
  const demo = await runDemo({
    seed,
    steps,
    strategy,
    leaves,
    learningRate: typeof learningRate === 'number' ? learningRate : defaults.learningRate,
    oracleBonus,
    ...withoutUndefined({ maxStaleness, onUpdate }),
    out,
    signal,
    ...display,
    onStep(record) {
      successes.push(record.success)
      display.onStep(record)
    },
    listen: tellOneGroup(terminal),
  })
  const { successBefore, successAfter, seconds, sampledTokens } = demo
  const result = { successBefore, successAfter, seconds, steps, sampledTokens, run: out }
  if (json) terminal.print(JSON.stringify(result))
  else
    for (const line of [...demoLines(demo, terminal), ...curveLines(successes)])
      terminal.print(line)
  for (const line of nextLines(out)) terminal.tell(line)
  return 0
}

/** Flags of the first act that the second has none of. */
const firstOnly = ['strategy', 'leaves', 'oracleBonus', 'maxStaleness', 'onUpdate'] as const

/** The second act: a pretrained model, which learns in an adapter. */
async function runSecond(
  out: string,
  { terminal, signal, json, flags }: Invocation,
): Promise<number> {
  const unused = firstOnly.find(name => flags[name] !== undefined)
  if (unused !== undefined) {
    throw new MisuseError(`--${flagOf(unused)} is for the demo without --policy`)
  }
  const policy = [flags.policy!].flat()[0]!
  const { steps = secondActDefaults.steps, seed = secondActDefaults.seed } = flags
  const { learningRate, offline, hub, device } = flags
  terminal.tell(
    `A pretrained model works out sums with a calculator: ${steps} steps of ${secondActDefaults.tasksPerStep} tasks, ` +
      `${secondActDefaults.group} attempts each; seed ${seed}.`,
  )
  const display = makeTrainingDisplay(terminal, steps)
  const demo = await runSecondAct({
    ...{ policy, seed, steps, out, signal, ...display, tell: terminal.tell },
    ...withoutUndefined({ offline, hub, device }),
    ...(typeof learningRate === 'number' && { learningRate }),
    listen: tellOneGroup(terminal),
  })
  const { successBefore, successAfter, seconds, sampledTokens } = demo
  const result = {
    successBefore,
    successAfter,
    seconds,
    steps: demo.steps,
    sampledTokens,
    run: out,
  }
  if (json) terminal.print(JSON.stringify(result))
  else for (const line of demoLines(demo, terminal, secondActDefaults.heldOut)) terminal.print(line)
  for (const line of nextLines(out, policy)) terminal.tell(line)
  return 0
}

/** What can be done with the run of a demonstration. */
export function nextLines(out: string, policy = 'embedded'): readonly string[] {
  return [
    `next  ${commandLine('view', out)}`,
    `      ${commandLine('show', out)}`,
    `      ${commandLine('audit', out, '--policy', policy)}`,
    `      ${commandLine('export', out, '--to', 'jsonl', '--out', 'rows.jsonl')}`,
  ]
}

/** The terms that a reader of the demonstration needs. */
const words = [
  '  a group      one task, tried several times by the same policy',
  '  a reward     what the world found an attempt worth, from 0 to 1',
  "  an advantage an attempt's reward against its group's: what it did becomes likelier above 0, less likely below",
]

/** Shows the first group that teaches something, with its rewards and what they become. */
function tellOneGroup(terminal: Terminal): Listen {
  let isShown = false
  return event => {
    if (isShown || event.kind !== 'group-end' || isHeldOut(event.group)) return
    const { id, members } = event.group
    if (new Set(members.map(({ reward }) => reward.total)).size < 2) return
    isShown = true
    const row = (values: readonly (number | null)[]): string =>
      values.map(value => (value ?? 0).toFixed(2).padStart(6)).join('')
    terminal.tell(`  one group, ${id}`)
    terminal.tell(`    rewards    ${row(members.map(({ reward }) => reward.total))}`)
    terminal.tell(`    advantages ${row(members.map(({ advantage }) => advantage))}`)
  }
}

function curveLines(successes: readonly number[]): readonly string[] {
  if (successes.length < 2) return []
  const [first, last] = [successes[0]!, successes.at(-1)!]
  return [`success by step of training  ${first.toFixed(2)} ${curve(successes)} ${last.toFixed(2)}`]
}

function demoLines(
  demo: Demo,
  terminal: Terminal,
  heldOut: number = demoDefaults.heldOut,
): readonly string[] {
  const { successBefore, successAfter, intervalBefore, intervalAfter, seconds, example } = demo
  const range = ({ low, high }: Demo['intervalAfter']): string =>
    `(${low.toFixed(3)} to ${high.toFixed(3)})`
  const show = (title: string, messages: Parameters<typeof conversationLines>[0]): string[] => [
    terminal.paint('bold', title),
    ...conversationLines(messages, terminal).map(line => `  ${line}`),
  ]
  return [
    ...(example
      ? [
          ...show(`${example.task}, failed before`, example.before.messages),
          ...show(`${example.task}, solved after`, example.after.messages),
        ]
      : []),
    `success on ${heldOut} held-out tasks: ${successBefore.toFixed(3)} ${range(intervalBefore)} before, ` +
      `${successAfter.toFixed(3)} ${range(intervalAfter)} after, in ${seconds.toFixed(0)} s`,
  ]
}
