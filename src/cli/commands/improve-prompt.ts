import { join } from 'node:path'
import { commandLine } from '../../base/core/names/program-name.ts'
import { count } from '../../base/core/names/units.ts'
import { meanScore } from '../../learn/improve/candidate.ts'
import { type Improved, improvePrompt } from '../../learn/improve/improve-prompt.ts'
import { improvementReport } from '../../learn/improve/report.ts'
import { train } from '../../learn/learn/train.ts'
import { trainOptionsOf } from '../../learn/learn/train-options.ts'
import { rollOptionsOf } from '../../run/run/roll-options.ts'
import { resolveSettings } from '../../run/settings/config.ts'
import { needed } from '../../run/settings/open-named.ts'
import { isInsideUri } from '../../run/settings/open-policy.ts'
import { type Settings, settingsOf, withoutUndefined } from '../../run/settings/settings.ts'
import { replaceFile } from '../../run/store/run-folder.ts'
import { type Command, type Invocation, MisuseError } from '../command.ts'
import { makeTrainingDisplay } from '../training-display.ts'

/** Rewrites what a policy is told until it does better. */
export const improvePromptCommand: Command = {
  name: 'improve-prompt',
  usage: '--policy URI --environment NAME --tasks FILE|N',
  about:
    'Improves the system message and the descriptions of tools before weights are trained: attempts are read, one text\n' +
    'is rewritten, and what earns more on other tasks is kept (reflective evolution, GEPA). Measures held-out tasks with\n' +
    'the first prompt and the best. Writes prompt.json, report.md and improve.json; what was tried is never paid for twice.',
  examples: [
    'espalier improve-prompt --policy openai:http://localhost:8000/v1 --environment ./shop.ts#shop --tasks tasks.jsonl',
    'espalier improve-prompt --policy embedded:models/shop --reflector openai:http://localhost:8000/v1 --environment desk --tasks 60 --then-train --steps 20',
  ],
  settings: [...new Set([...settingsOf('eval'), ...settingsOf('train')])],
  readsConfig: true,
  own: {
    tokens: { help: 'Sampled tokens to spend on finding it (default: 200000)', argument: 'N' },
    reflector: {
      help: 'Whoever reads attempts and rewrites: a policy (default: the policy itself)',
      argument: 'URI',
    },
    minibatch: { help: 'Tasks that one reflection looks at (default: 3)', argument: 'N' },
    'reflection-tokens': { help: 'Most tokens of one reflection (default: 1024)', argument: 'N' },
    'then-train': {
      help: 'Trains the weights from the better prompt, and reports what each bought',
    },
  },
  positionalCount: [0, 0],
  run: runImprovePrompt,
}

async function runImprovePrompt(invocation: Invocation): Promise<number> {
  const { own, terminal, signal, json } = invocation
  const { values } = await resolveSettings(invocation)
  const { out = 'prompts/improved', trials, heldOut, successAt, prompt, tasks = 60 } = values
  const { prompt: _, ...rolling } = rollOptionsOf(values)
  const { tell } = terminal
  const improved = await improvePrompt(needed(values, 'environment'), tasks, {
    ...rolling,
    out,
    group: trials,
    signal,
    tell,
    ...withoutUndefined({
      heldOut,
      successAt,
      prompt,
      reflector: own.reflector,
      tokens: wholeOf('tokens', own.tokens),
      minibatch: wholeOf('minibatch', own.minibatch),
      reflectionTokens: wholeOf('reflection-tokens', own['reflection-tokens']),
    }),
    onCandidate(candidate, place) {
      const kind = ['the first prompt', 'a better one', 'a merged one'][candidate.parents.length]
      tell(`prompt ${place}: ${kind}, mean reward ${meanScore(candidate).toFixed(3)}`)
    },
  })
  const trained =
    own['then-train'] === undefined ? undefined : await trainFrom(out, values, invocation)
  if (trained) await replaceFile(join(out, 'report.md'), improvementReport(improved, trained))
  const { training: _training, ...weights } = trained ?? { training: undefined }
  if (json)
    terminal.print(JSON.stringify({ out, ...improved, ...(trained && { trained: weights }) }))
  else for (const line of linesOf(improved)) terminal.print(line)
  tell(`wrote  ${join(out, 'prompt.json')}, report.md and improve.json`)
  if (!trained) tell(`next  ${nextLine(out, values)}`)
  return 0
}

function linesOf({ successBefore, successAfter, difference, tokens }: Improved): readonly string[] {
  const { value, low, high } = difference
  const bounds = `${low.toFixed(3)} to ${high.toFixed(3)}`
  return [
    `success ${successBefore.toFixed(3)} before, ${successAfter.toFixed(3)} after`,
    `difference ${value.toFixed(3)} (${bounds}); ${count(tokens.policy + tokens.reflection)} sampled tokens`,
  ]
}

/** Trains with the prompt that was found, on the tasks that were not held out. */
async function trainFrom(out: string, values: Settings, { terminal, signal }: Invocation) {
  return await train(needed(values, 'environment'), join(out, 'tasks.jsonl'), {
    ...trainOptionsOf({ ...values, tasks: join(out, 'tasks.jsonl') }),
    ...makeTrainingDisplay(terminal, values.steps),
    heldOut: join(out, 'held-out.jsonl'),
    prompt: join(out, 'prompt.json'),
    out: join(out, 'training'),
    signal,
    tell: terminal.tell,
  })
}

/** What to do with the prompt: train with it what is inside, roll with it what is behind a server. */
function nextLine(out: string, { policy, model, environment }: Settings): string {
  const policies = [policy].flat().flatMap(uri => uri ?? [])
  const isInside = policies.every(isInsideUri)
  const heldOut = isInside ? ['--held-out', join(out, 'held-out.jsonl')] : []
  return commandLine(
    isInside ? 'train' : 'roll',
    ...policies.flatMap(uri => ['--policy', uri]),
    ...(model === undefined ? [] : ['--model', model]),
    ...['--environment', environment!, '--tasks', join(out, 'tasks.jsonl'), ...heldOut],
    ...['--prompt', join(out, 'prompt.json')],
  )
}

function wholeOf(flag: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  if (/^\d{1,12}$/.test(text) && Number(text) >= 1) return Number(text)
  throw new MisuseError(`--${flag} takes a whole number from 1 on, not "${text}"`)
}
