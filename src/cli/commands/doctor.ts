import { describeDiagnosis, type Section } from '@espalier/text/chat'
import type { Trial } from '../../engine/policies/trial.ts'
import type { ServerCheck } from '../../run/measure/check-server.ts'
import { type Examination, examineModel } from '../../run/measure/doctor.ts'
import { evidenceWords } from '../../run/run/servers/settle-logprobs.ts'
import { resolveSettings } from '../../run/settings/config.ts'
import { rendererSettings } from '../../run/settings/model-source.ts'
import { type Command, type Invocation, MisuseError } from '../command.ts'
import type { Terminal } from '../terminal.ts'

/** Examines the border between messages and tokens of a model folder. */
export const doctorCommand: Command = {
  name: 'doctor',
  usage: 'DIR|ID',
  about:
    'Opens the tokenizer and the chat template of a model, prints what probing them found out, plays\n' +
    'random conversations and compares every token with a whole rendering, and says what each way\n' +
    'of keeping history will do. With --policy it compares the tokens of a server with those of the\n' +
    'folder, draws tokens from it at two temperatures and scores them again. Exit 1 where tokens\n' +
    'cannot be exact.',
  examples: [
    'espalier doctor ./models/qwen3-4b',
    'espalier doctor Qwen/Qwen3-4B --policy sglang:http://localhost:30000',
  ],
  settings: [
    'policy',
    'servedModel',
    'offline',
    'hub',
    'keyVariable',
    'templateVariables',
    'toolFormat',
    'reasoningFormat',
    'markers',
    'toolInstruction',
    'seed',
  ],
  readsConfig: true,
  own: {
    conversations: { help: 'How many random conversations to play (default: 40)', argument: 'N' },
  },
  positionalCount: [1, 1],
  run: runDoctor,
}

async function runDoctor(invocation: Invocation): Promise<number> {
  const { positionals: words, terminal, json, signal, own } = invocation
  const { values } = await resolveSettings(invocation)
  const key = process.env[values.keyVariable]
  const examination = await examineModel(words[0]!, {
    renderer: { ...rendererSettings(values), tell: terminal.tell },
    policies: [invocation.flags.policy ?? []].flat(),
    ...(key !== undefined && { key }),
    ...(values.servedModel !== undefined && { servedModel: values.servedModel }),
    conversations: countOf(own.conversations),
    seed: values.seed,
    signal,
  })
  if (json) terminal.print(JSON.stringify(examination))
  else printExamination(examination, terminal)
  return examination.isExact ? 0 : 1
}

function countOf(word: string | undefined): number {
  const count = Number(word ?? 40)
  if (Number.isInteger(count) && count > 0) return count
  throw new MisuseError(`--conversations should be a whole number above 0, but is "${word}"`)
}

function printExamination(examination: Examination, terminal: Terminal): void {
  const { diagnosis, servers, isExact } = examination
  const { model, vocabulary } = diagnosis
  terminal.print(terminal.paint('bold', `${model}  ${vocabulary.toLocaleString('en')} tokens`))
  const sections = [...describeDiagnosis(diagnosis), ...servers.map(describeServer)]
  for (const { heading, sentences } of sections) {
    for (const [index, sentence] of sentences.entries()) {
      const start = index === 0 ? heading : ''
      printWrapped(terminal, start, sentence)
    }
  }
  const verdict = isExact
    ? terminal.paint('green', 'Tokens are exact.')
    : terminal.paint('red', 'Tokens cannot be exact.')
  printWrapped(terminal, 'verdict', verdict)
}

function describeServer(check: ServerCheck): Section {
  const { policy, model, compared, differences, notes, problem, trial } = check
  const served = model === undefined ? policy : `${policy} serves ${model}`
  const equal = compared > 0 && differences.length === 0
  return {
    heading: 'server',
    sentences: [
      `${served}.`,
      ...(equal ? [`${compared} texts have the same tokens there, stop tokens among them.`] : []),
      ...differences.map(difference => `${difference}.`),
      ...(problem === undefined ? [] : [`No token could be drawn: ${problem}.`]),
      ...(trial ? describeTrial(trial) : []),
      ...notes.map(note => `${note}.`),
    ],
  }
}

function describeTrial(trial: Trial): readonly string[] {
  const { ids, warmDifference, repeatsSeeds } = trial
  const warm =
    warmDifference === undefined || warmDifference === 0
      ? ''
      : `Tokens that were drawn alone and again beside others have numbers up to ${warmDifference.toPrecision(2)} apart: the batch, or what is cached, changes them.`
  const seeds = repeatsSeeds
    ? 'The same seed draws the same tokens.'
    : 'The same seed draws other tokens: a resumed run goes on with other samples than it had.'
  const sentences = [scoredAgain(trial), basisSentence(trial), warm, seeds]
  return [`${ids.length} tokens were drawn.`, ...sentences.filter(each => each !== '')]
}

function scoredAgain({ difference, meanDifference }: Trial): string {
  if (difference === undefined || meanDifference === undefined) return 'It cannot score them again.'
  const usual = usualPrecisions.find(({ most }) => meanDifference <= most)
  const words = usual ? `usual for ${usual.name}` : 'more than is usual at any precision'
  return `Scored again, they differ by ${meanDifference.toPrecision(2)} on average and ${difference.toPrecision(2)} at most: ${words}.`
}

/** The mean difference between decoding and scoring that servers of a precision were measured to have, with room. */
const usualPrecisions = [
  { name: 'float32 (up to 6e-5 on each token)', most: 2e-4 },
  { name: 'a cache of half precision', most: 8e-3 },
  { name: 'bfloat16 (0.04 on average), or a quantised model (Q4_1: 0.06)', most: 0.12 },
]

function basisSentence({ logprobs, evidence }: Trial): string {
  if (logprobs === 'raw') {
    return 'At other temperatures its numbers are raw, of temperature 1; ratios of a loss need processed ones (vLLM: --logprobs-mode processed_logprobs).'
  }
  if (logprobs === 'processed') {
    return 'At other temperatures its numbers are of the temperature that it samples with.'
  }
  if (!evidence) return ''
  return `Whether its numbers at other temperatures are raw or processed could not be found out: ${evidenceWords(evidence)}; say it with --logprobs.`
}

const indent = 10

/** Prints a sentence behind its heading, wrapped to the terminal's width. */
function printWrapped(terminal: Terminal, heading: string, sentence: string): void {
  const width = Math.max(40, Math.min(terminal.width, 110) - indent)
  const lines: string[] = []
  let line = ''
  for (const word of sentence.split(' ')) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line)
      line = word
    } else line = line === '' ? word : `${line} ${word}`
  }
  lines.push(line)
  lines.forEach((each, index) => {
    const start = index === 0 ? heading : ''
    terminal.print(`${terminal.paint('dim', start.padEnd(indent))}${each}`)
  })
}
