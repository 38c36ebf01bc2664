import { makeLanes } from '../../../base/core/lane.ts'
import { commandLine } from '../../../base/core/names/program-name.ts'
import { count } from '../../../base/core/names/units.ts'
import type { Policy } from '../../../base/core/policy.ts'
import { type Converted, type ConvertOptions, convertRun } from '../../../run/exchange/convert.ts'
import { refuseOtherTokens } from '../../../run/exchange/same-tokens.ts'
import { scoredBy } from '../../../run/run/attach-scores.ts'
import { openEstimateNamed } from '../../../run/run/open-parts.ts'
import { cannotScore, openScorer } from '../../../run/run/open-scorers.ts'
import { findModelOf, openRenderer, rendererSettings } from '../../../run/settings/model-source.ts'
import { isInsideUri, openPolicy } from '../../../run/settings/open-policy.ts'
import type { Settings } from '../../../run/settings/settings.ts'
import { claimRunFolder } from '../../../run/store/run-folder.ts'
import { writeReport } from '../../../run/watch/run-report.ts'
import { type Command, type Invocation, MisuseError } from '../../command.ts'
import { enterRun } from '../../enter-run.ts'

/** Makes single-turn samples of multi-turn trajectories. */
export const convertCommand: Command = {
  name: 'convert',
  usage: 'RUN --to steps [--policy URI] [--out RUN]',
  about:
    'Puts every turn of a run’s trajectories behind a prompt of its own: the opening and the last\n' +
    'actions and observations, without reasoning. The policy did not sample them from these prompts, so\n' +
    'they are marked off-policy. A --policy that can score says how likely it finds every token behind its\n' +
    'new prompt: trainers take such rows, with importance weights (--importance). Without one they have\n' +
    'no log-probabilities. To sample behind bounded prompts in the first place, roll with --strategy step.',
  examples: [
    'espalier convert runs/0007 --to steps --out runs/steps',
    'espalier convert runs/0007 --to steps --policy embedded --out runs/steps',
  ],
  settings: [
    ...(['stepHistory', 'advantage', 'weighting', 'model', 'policy', 'offline', 'hub'] as const),
    ...(['keyVariable', 'deadline', 'retries', 'concurrency', 'out'] as const),
  ],
  own: { to: { help: 'What to convert to: steps', argument: 'KIND' } },
  positionalCount: [1, 1],
  run: runConvert,
}

async function runConvert(invocation: Invocation): Promise<number> {
  const { own, flags, terminal, json } = invocation
  if (own.to !== 'steps') {
    throw new MisuseError(
      `convert needs --to steps${own.to === undefined ? '' : `, not "${own.to}"`}`,
    )
  }
  const { run, values: begun, meantThere } = await enterRun(invocation)
  const named = flags.out === undefined ? undefined : meantThere(flags.out)
  await using claimed = await claimRunFolder(named, meantThere('runs'))
  const { out } = claimed
  const isScored = flags.policy !== undefined
  // Those who read the new run find the scores that importance weights need.
  const values: Settings = { ...begun, out, ...(isScored && { proximal: 'recompute' }) }
  await using scorer = isScored ? await openScoring(values, invocation) : undefined
  const model = values.model ?? (await servedModel(values, scorer?.policy))
  const renderer = await openRenderer(model, { ...rendererSettings(values), tell: terminal.tell })
  if (scorer) await refuseOtherTokens(run, renderer, `--policy ${[values.policy].flat().join(' ')}`)
  const converted = await convertRun(run, {
    out,
    renderer,
    history: values.stepHistory,
    estimate: await openEstimateNamed(values.advantage),
    weighting: values.weighting,
    config: values,
    ...(scorer && { score: scorer.score }),
  })
  await writeReport(out, { conversion: { from: run, ...converted } })
  if (json) terminal.print(JSON.stringify({ run: out, ...converted, offPolicy: true }))
  else for (const line of convertedLines(values, converted)) terminal.print(line)
  return 0
}

interface Scoring extends AsyncDisposable, Required<Pick<ConvertOptions, 'score'>> {
  readonly policy: Policy
}

/** A policy that scores trees, as many paths at one time as the settings allow. */
async function openScoring(
  values: Settings,
  { signal }: Pick<Invocation, 'signal'>,
): Promise<Scoring> {
  const { policy: uri = [], concurrency } = values
  const policy = await openScorer('policy', uri, values)
  if (!policy.capabilities.score) {
    await policy[Symbol.asyncDispose]()
    throw cannotScore('policy', policy)
  }
  const most = typeof concurrency === 'number' ? concurrency : (concurrency.policy ?? 64)
  const lanes = makeLanes({ policy: most, tools: 1, environment: 1, reward: 1 })
  return {
    policy,
    score: tree => scoredBy(tree, [['proximal', policy]], { context: { lanes }, call: { signal } }),
    [Symbol.asyncDispose]: () => policy[Symbol.asyncDispose](),
  }
}

function convertedLines(
  { policy = [], out = '' }: Settings,
  { distance, ...counts }: Converted,
): readonly string[] {
  const { turns, trajectories, groups } = counts
  const made = `${count(turns)} turns of ${count(trajectories)} trajectories in ${count(groups)} groups, each a sample now`
  const written = ['export', out, '--to', 'jsonl', '--out', 'steps.jsonl']
  if (!distance) {
    return [
      made,
      'off-policy: without log-probabilities; with --policy URI, a policy scores them behind their new prompts',
      `next  ${commandLine(...written)}`,
    ]
  }
  const { tokens, k1, k3, far } = distance
  const [uri = ''] = [policy].flat()
  const weighed = ['--importance', 'token']
  const learned = ['train', '--from', out, '--policy', uri, '--proximal', 'recompute', ...weighed]
  return [
    made,
    `off-policy: ${count(tokens)} tokens scored behind their new prompts, ${k3.toFixed(4)} nats from how they were sampled ` +
      `(k3; k1 ${k1.toFixed(4)}), ${(100 * far).toFixed(1)} % of them twice or half as likely`,
    `next  ${commandLine(...(isInsideUri(uri) ? learned : [...written, ...weighed]))}`,
  ]
}

async function servedModel({ policy: uri }: Settings, opened?: Policy): Promise<string> {
  if (opened) return await findModelOf(opened)
  if (uri === undefined) throw new MisuseError('the run names no model: name it with --model')
  await using policy = await openPolicy(uri)
  return await findModelOf(policy)
}
