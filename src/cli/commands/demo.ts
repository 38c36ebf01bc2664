import { type Demo, demoDefaults, runDemo } from '../../learn/demo.ts'
import { commandLine } from '../../names/program-name.ts'
import { claimRunFolder } from '../../store/run-folder.ts'
import type { Command, Invocation } from '../command.ts'
import { conversationLines } from '../conversation.ts'
import type { Terminal } from '../terminal.ts'
import { openTrainingDisplay } from '../training-display.ts'

const { tasksPerStep, group, heldOut: _, ...choices } = demoDefaults
const defaults = { ...choices, oracleBonus: 0 }

/** The main job on the embedded default. */
export const demoCommand: Command = {
  name: 'demo',
  summary: 'Watch the policy inside act at a service desk, learn from it, and get better',
  usage: '',
  about:
    'Rolls the embedded policy at a service desk, trains it with GRPO on its own trajectories and\n' +
    'evaluates it before and after on 512 held-out tasks at temperature 1. Needs no GPU, key or\n' +
    'download. Ends with one task that it failed before and solved after, and leaves a run folder\n' +
    'with every trajectory.',
  examples: ['espalier demo', 'espalier demo --seed 3 --json'],
  settings: ['seed', 'steps', 'strategy', 'leaves', 'learningRate', 'oracleBonus', 'out'],
  defaults,
  isCommon: true,
  words: [0, 0],
  run: runDemoCommand,
}

async function runDemoCommand(invocation: Invocation): Promise<number> {
  const { terminal, signal, json, flags } = invocation
  await using claimed = await claimRunFolder(flags.out)
  const { out } = claimed
  const {
    seed = defaults.seed,
    steps = defaults.steps,
    strategy = defaults.strategy,
    leaves = defaults.leaves,
    learningRate = defaults.learningRate,
    oracleBonus = defaults.oracleBonus,
  } = flags
  terminal.tell(
    `A small model serves a desk: ${steps} steps of ${tasksPerStep} tasks, ${group} attempts each; seed ${seed}.`,
  )
  const demo = await runDemo({
    seed,
    steps,
    strategy,
    leaves,
    learningRate,
    oracleBonus,
    out,
    signal,
    ...openTrainingDisplay(terminal, steps),
  })
  const { successBefore, successAfter, seconds, sampledTokens } = demo
  const result = { successBefore, successAfter, seconds, steps, sampledTokens, run: out }
  if (json) terminal.print(JSON.stringify(result))
  else for (const line of demoLines(demo, terminal)) terminal.print(line)
  terminal.tell(`next  ${commandLine('view', out)}`)
  terminal.tell(`      ${commandLine('show', out)}`)
  terminal.tell(`      ${commandLine('audit', out, '--policy', 'embedded')}`)
  terminal.tell(`      ${commandLine('export', out, '--to', 'jsonl', '--out', 'rows.jsonl')}`)
  return 0
}

function demoLines(demo: Demo, terminal: Terminal): readonly string[] {
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
    `success on ${demoDefaults.heldOut} held-out tasks: ${successBefore.toFixed(3)} ${range(intervalBefore)} before, ` +
      `${successAfter.toFixed(3)} ${range(intervalAfter)} after, in ${seconds.toFixed(0)} s`,
  ]
}
