import { textOf } from '@espalier/text'
import type { ModelRenderer } from '@espalier/text/chat'
import { type Policy, plainCapabilities, type SampleRequest } from '../../src/base/core/policy.ts'
import { sampled } from '../../src/base/core/segment.ts'
import { call } from '../rolling.ts'

/** The shell of a harness, by its name, and what it calls its argument. */
const shells: Readonly<Record<string, string>> = {
  Bash: 'command',
  bash: 'command',
  exec_command: 'cmd',
}
const work = 'mkdir -p out && echo Hello, $(cat data/name.txt) > out/greeting.txt'
const submit = 'echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; echo done'
const looks = ['Look at the file data/name.txt.', 'Look for the folder called out.']

const summary = 'Numbers were counted; the greeting has to be written.'

/** What a scripted model answers a harness: it works once and says that it is done; whoever offers no shell wants a title. */
function answerTo(harness: string, { prompt: { messages, tools } }: SampleRequest): string {
  const compacts = harness.startsWith('compaction')
  if (compacts && wantsSummary(messages)) return `<summary>${summary}</summary><|im_end|>`
  const shell = tools.map(({ function: { name } }) => name).find(name => name in shells)
  if (shell === undefined) return 'A greeting<|im_end|>'
  const run = (line: string) => call(shell, { [shells[shell]!]: line, description: 'Greets' })
  const isCompacted = messages.some(({ content }) => textOf(content).includes(summary))
  if (compacts && !isCompacted) return run('yes counted | head -c 9000')
  const results = messages.filter(({ role }) => role === 'tool').length
  if (harness === 'sub-agents' && isAbove(messages) && results === 0) return calls()
  if (!isAbove(messages)) return 'I looked.<|im_end|>'
  const hasGreeted = messages.some(({ content }) => textOf(content).includes('greeted'))
  const isWorking = compacts
    ? !hasGreeted
    : results === (harness === 'sub-agents' ? looks.length : 0)
  if (!isWorking && harness !== 'mini-swe-agent') return 'The greeting is written.<|im_end|>'
  return run(isWorking ? (compacts ? `${work} && echo greeted` : work) : submit)
}

/** Whether a harness asks for what a conversation is to go on from, and has none yet. */
function wantsSummary(messages: SampleRequest['prompt']['messages']): boolean {
  const last = messages.at(-1)
  const text = last?.role === 'user' ? textOf(last.content) : ''
  return /\bsummar/i.test(text) && !text.includes(summary)
}

/** Whether a conversation is that of the agent itself, not of one of its own. */
function isAbove(messages: SampleRequest['prompt']['messages']): boolean {
  const asked = messages.filter(({ role }) => role === 'user').map(({ content }) => textOf(content))
  return !asked.some(text => looks.some(look => text.trim().endsWith(look)))
}

/** Two sub-agents in one turn, which ask side by side. */
function calls(): string {
  const each = looks.map(prompt =>
    call('Agent', { description: 'Look', prompt, subagent_type: 'general-purpose' }),
  )
  return each.join('\n').replace('<|im_end|>', '')
}

/** A policy that knows what each harness has to be answered; the greeting of the task folder `greet` is its work. */
export function scriptFor(harness: string, renderer: ModelRenderer): Policy {
  return {
    name: 'script',
    capabilities: plainCapabilities,
    async sample(request) {
      const ids = renderer.tokenizer.encode(answerTo(harness, request))
      const usage = { prompt: request.prompt.ids.length, sampled: ids.length, seconds: 0 }
      const segment = sampled({ ids, logprobs: null, version: { from: 0, to: 0 } })
      return { kind: 'tokens', segment, finish: { kind: 'stop' }, usage }
    },
    describe: async () => ({ model: 'script' }),
    async [Symbol.asyncDispose]() {},
  }
}
