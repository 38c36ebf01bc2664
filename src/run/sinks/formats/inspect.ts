import type { Message } from '@espalier/text'
import { textOf } from '@espalier/text'
import { describeOutcome } from '../../../base/core/outcome.ts'
import { mean } from '../../../base/math/statistics.ts'
import { isUnscored } from '../../rows/row-record.ts'
import { argumentsOf, type Conversation, conversationsOf } from '../conversations.ts'
import type { ExportGroup, Format, FormatOptions } from '../format.ts'
import { answerOf } from '../line-format.ts'
import { takeTrial } from './tau-bench.ts'

/** Scores by their names, over all samples. */
type Scores = Map<string, number[]>

/**
 * The log of an evaluation as Inspect AI reads it (inspect_ai/log/_log.py, version 2): one JSON object,
 * its fields in that order, since readers of the header stop at the samples. A trajectory is a sample,
 * an attempt at its task is an epoch.
 */
export const inspect: Format = {
  name: 'inspect',
  isWhole: true,
  summary: "Inspect AI's evaluation log (.json): conversations with their scores",
  carries: ['rewards', 'reward parts', 'messages', 'outcomes', 'fidelity', 'advantages'],
  open(output, options) {
    const samples: string[] = []
    const tasks = new Set<string>()
    const taken = new Set<string>()
    const scores: Scores = new Map()
    return {
      async write(source) {
        const conversations = conversationsOf(source.group, options)
        for (const conversation of conversations) {
          const epoch = takeTrial(source.group.task, conversation.tree.member, taken) + 1
          tasks.add(source.group.task)
          addScores(scores, conversation)
          samples.push(JSON.stringify(toSample(source, conversation, { epoch, options })))
        }
        return conversations.length
      },
      async end() {
        const header = JSON.stringify(toHeader([...tasks], samples.length, { scores, options }))
        await output.write(`${header.slice(0, -1)},"samples":[`)
        let before = '\n'
        for (const sample of samples) {
          await output.write(`${before}${sample}`)
          before = ',\n'
        }
        await output.write('\n]}\n')
      },
    }
  },
  loading: file => [
    `python:  from inspect_ai.log import read_eval_log; log = read_eval_log(${JSON.stringify(file)})`,
    ...(file.endsWith('.json') ? [] : ['         which wants a name that ends in .json']),
    'shell:   inspect view --log-dir .',
  ],
}

const modelOf = ({ about }: FormatOptions): string => about?.policy ?? 'policy'

interface Written {
  readonly scores: Scores
  readonly options: FormatOptions
}

function toHeader(tasks: readonly string[], samples: number, { scores, options }: Written): object {
  const { run, about } = options
  const created = about?.started ?? new Date(0).toISOString()
  const metric = (values: readonly number[]) => ({
    mean: { name: 'mean', value: mean(values), params: {} },
  })
  return {
    version: 2,
    status: 'success',
    eval: {
      ...{ eval_id: run, run_id: run, task_id: run, created, task: about?.environment ?? run },
      dataset: { name: run, samples: tasks.length, sample_ids: tasks },
      model: modelOf(options),
      config: {},
      packages: {},
    },
    plan: { name: 'plan', steps: [], config: {} },
    results: {
      total_samples: samples,
      completed_samples: samples,
      scores: [...scores].map(([name, values]) => ({
        ...{ name, scorer: name, params: {}, metrics: metric(values) },
      })),
    },
    stats: { started_at: created, completed_at: created, model_usage: {} },
  }
}

/** The total as `reward`, and each part by its name. */
function scoresOf({ member }: Conversation): readonly (readonly [string, number])[] {
  if (isUnscored(member)) return []
  const { total, parts } = member.reward
  return [['reward', total], ...parts.map(({ name, score }) => [name, score] as const)]
}

function addScores(scores: Scores, conversation: Conversation): void {
  for (const [name, score] of scoresOf(conversation)) {
    const known = scores.get(name)
    if (known) known.push(score)
    else scores.set(name, [score])
  }
}

interface Place {
  readonly epoch: number
  readonly options: FormatOptions
}

function toSample(source: ExportGroup, conversation: Conversation, { epoch, options }: Place) {
  const { member, messages, tree } = conversation
  const { trajectory } = member
  const { prompt, sampled } = trajectory.usage
  const told = messages.map(toMessage)
  const first = messages.findIndex(({ role }) => role === 'assistant')
  const last = told[messages.findLastIndex(({ role }) => role === 'assistant')]
  const outcome = isUnscored(member) ? member.outcome : trajectory.outcome
  const model = modelOf(options)
  const usage = { input_tokens: prompt, output_tokens: sampled, total_tokens: prompt + sampled }
  return {
    id: source.group.task,
    epoch,
    input: first < 0 ? told : told.slice(0, first),
    target: answerOf(source.task) ?? '',
    messages: told,
    output: {
      model,
      choices: last ? [{ message: last, stop_reason: 'stop' }] : [],
      usage,
    },
    scores: Object.fromEntries(scoresOf(conversation).map(([name, value]) => [name, { value }])),
    metadata: {
      trajectory: trajectory.id,
      group: source.group.id,
      member: tree.member,
      outcome: describeOutcome(outcome),
      fidelity: trajectory.fidelity.kind,
      advantage: isUnscored(member) || member.dropped ? null : member.advantage,
    },
    model_usage: { [model]: usage },
    ...(outcome.kind === 'failed' && {
      error: { message: describeOutcome(outcome), traceback: '', traceback_ansi: '' },
    }),
  }
}

function toMessage(message: Message): object {
  const content = contentOf(message)
  switch (message.role) {
    case 'assistant': {
      const calls = message.tool_calls?.map(({ id, function: { name, arguments: text } }) => ({
        ...{ id, type: 'function', function: name, arguments: argumentsOf(text) },
      }))
      return { role: 'assistant', content, ...(calls && { tool_calls: calls }) }
    }
    case 'tool':
      return { role: 'tool', content, tool_call_id: message.tool_call_id }
    case 'user':
      return { role: 'user', content }
    default:
      return { role: 'system', content }
  }
}

function contentOf(message: Message): string | readonly object[] {
  const { content } = message
  const reasoning = message.role === 'assistant' ? message.reasoning_content : undefined
  if (reasoning === undefined && !Array.isArray(content)) return textOf(content)
  const parts = Array.isArray(content)
    ? content
    : [{ type: 'text' as const, text: textOf(content) }]
  return [
    ...(reasoning === undefined ? [] : [{ type: 'reasoning', reasoning }]),
    ...parts.map(part =>
      part.type === 'image_url' ? { type: 'image', image: part.image_url.url } : part,
    ),
  ]
}
