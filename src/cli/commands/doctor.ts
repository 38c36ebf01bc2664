import { describeDiagnosis, type Section } from '@espalier/text/chat'
import type { Trial } from '../../engine/policies/trial.ts'
import type { ServerCheck } from '../../run/measure/check-server.ts'
import { type Examination, examineModel } from '../../run/measure/doctor.ts'
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
  words: [1, 1],
  run: runDoctor,
}

async function runDoctor(invocation: Invocation): Promise<number> {
  const { words, terminal, json, signal, own } = invocation
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

function describeTrial({ ids, difference, logprobs, repeatsSeeds }: Trial): readonly string[] {
  const scored =
    difference === undefined
      ? 'It cannot score them again.'
      : `Scored again, they differ by at most ${difference.toPrecision(2)} in log-probability.`
  const other = {
    raw: 'At other temperatures its numbers are raw, of temperature 1: ratios of a loss need processed ones.',
    processed: 'At other temperatures its numbers are of the temperature that it samples with.',
    unknown: '',
  }[logprobs ?? 'unknown']
  const seeds = repeatsSeeds
    ? 'The same seed draws the same tokens.'
    : 'The same seed draws other tokens: a resumed run goes on with other samples than it had.'
  return [`${ids.length} tokens were drawn. ${scored}`, ...(other ? [other] : []), seeds]
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
