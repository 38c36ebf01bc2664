import { commandLine } from '../../../base/core/names/program-name.ts'
import { count } from '../../../base/core/names/units.ts'
import { convertRun } from '../../../run/exchange/convert.ts'
import { openEstimateNamed } from '../../../run/run/open-parts.ts'
import { openModelOf, openRenderer, rendererSettings } from '../../../run/settings/model-source.ts'
import { openPolicy } from '../../../run/settings/open-policy.ts'
import type { Settings } from '../../../run/settings/settings.ts'
import { claimRunFolder } from '../../../run/store/run-folder.ts'
import { type Command, type Invocation, MisuseError } from '../../command.ts'
import { enterRun } from '../../enter-run.ts'

/** Makes single-turn samples of multi-turn trajectories. */
export const convertCommand: Command = {
  name: 'convert',
  usage: 'RUN --to steps [--out RUN]',
  about:
    'Puts every turn of a run’s trajectories behind a prompt of its own: the opening and the last\n' +
    'actions and observations, without reasoning. The policy did not sample them from these prompts, so\n' +
    'they are marked off-policy and have no log-probabilities: a trainer must compute them anew. To\n' +
    'sample behind bounded prompts in the first place, roll with --strategy step.',
  examples: ['espalier convert runs/0007 --to steps --out runs/steps'],
  settings: ['stepHistory', 'advantage', 'weighting', 'model', 'policy', 'offline', 'hub', 'out'],
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
  const values: Settings = { ...begun, out }
  const model = values.model ?? (await servedModel(values))
  const counts = await convertRun(run, {
    out,
    renderer: await openRenderer(model, { ...rendererSettings(values), tell: terminal.tell }),
    history: values.stepHistory,
    estimate: await openEstimateNamed(values.advantage),
    weighting: values.weighting,
    config: values,
  })
  if (json) terminal.print(JSON.stringify({ run: out, ...counts, offPolicy: true }))
  else {
    const { turns, trajectories, groups } = counts
    terminal.print(
      `${count(turns)} turns of ${count(trajectories)} trajectories in ${count(groups)} groups, each a sample now`,
    )
    terminal.print('off-policy: without log-probabilities, which a trainer has to compute anew')
    terminal.print(`next  ${commandLine('export', out, '--to', 'jsonl', '--out', 'steps.jsonl')}`)
  }
  return 0
}

async function servedModel({ policy: uri }: Settings): Promise<string> {
  if (uri === undefined) throw new MisuseError('the run names no model: name it with --model')
  await using policy = await openPolicy(uri)
  return await openModelOf(policy)
}
