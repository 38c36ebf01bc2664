import type { ToolDefinition } from '@espalier/text'
import type { ModelRenderer } from '@espalier/text/chat'
import { type Form, type Policy, plainSampling } from '../../src/base/core/policy.ts'
import { mean } from '../../src/base/math/statistics.ts'
import { checkBy } from '../../src/engine/capture/form/schema-check.ts'
import { formFor } from '../../src/engine/capture/form/wanted.ts'
import { within } from './try-server.ts'

/** What a server made of one form, at one temperature. */
export interface FormsReport {
  readonly kind: string
  readonly form: string
  readonly temperature: number
  /** Samples, how many of them ended by themselves, and how many of those have the form. */
  readonly samples: number
  readonly ended: number
  readonly fitting: number
  /** What we say that the log-probabilities are of, and their mean beside that of the whole distribution. */
  readonly basis: string
  readonly given: number
  readonly whole: number
}

const schema = {
  type: 'object',
  properties: { kind: { enum: ['pear', 'apple'] }, count: { enum: [1, 2, 30] } },
  required: ['kind', 'count'],
  additionalProperties: false,
}
const look: ToolDefinition = {
  type: 'function',
  function: { name: 'look', description: 'Looks.', parameters: schema },
}

/** Asks for a call of a tool and for JSON of a schema, and holds what came to them. */
export async function tryForms(
  policy: Policy,
  { kind, renderer, samples }: { kind: string; renderer: ModelRenderer; samples: number },
): Promise<readonly FormsReport[]> {
  const asked = { messages: [], tools: [look] }
  const context = { policy, renderer }
  const forms = {
    call: formFor({ ...asked, toolChoice: { tool: 'look' } }, context, [look]),
    json: formFor({ ...asked, responseFormat: { kind: 'json', schema } }, context, []),
  }
  const reports: FormsReport[] = []
  for (const [name, form] of Object.entries(forms)) {
    if (!form) throw new Error(`${kind} cannot be held to the form of a ${name}`)
    const prompt = renderer.render([{ role: 'user', content: 'How many pears?' }], [look])
    for (const temperature of [1, 0.7]) {
      const tried = { prompt, form, temperature, samples }
      reports.push({ kind, form: name, ...(await tryForm(policy, renderer, tried)) })
    }
  }
  return reports
}

interface Tried {
  readonly prompt: Int32Array
  readonly form: Form
  readonly temperature: number
  readonly samples: number
}

async function tryForm(policy: Policy, renderer: ModelRenderer, tried: Tried) {
  const { prompt, form, temperature, samples } = tried
  const found = { samples, ended: 0, fitting: 0, basis: '-' }
  const [given, whole]: number[][] = [[], []]
  for (let seed = 0; seed < samples; seed++) {
    const sample = await policy.sample(
      {
        prompt: { ids: prompt, messages: [], tools: [] },
        maxTokens: 800,
        sampling: { ...plainSampling, temperature },
        stopIds: renderer.stopIds,
        stopStrings: [],
        seed,
        form,
        key: { task: 'forms', member: seed, branch: '', turn: 0 },
        session: String(seed),
      },
      within(),
    )
    if (sample.kind !== 'tokens') throw new Error(`${policy.name} gives no token ids`)
    const { ids, logprobs, basis } = sample.segment
    const ended = sample.finish.kind === 'stop' && renderer.stopIds.includes(ids.at(-1)!)
    found.ended += Number(ended)
    found.fitting += Number(ended && isOf(form, renderer.decode(ids.subarray(0, -1))))
    found.basis = basis ?? '-'
    given!.push(...(logprobs ?? []))
    const all = Int32Array.from([...prompt, ...ids])
    const scores = await policy.score?.(all, prompt.length, { temperature: 1 }, within())
    whole!.push(...(scores?.logprobs ?? []))
  }
  return { ...found, temperature, given: mean(given!), whole: mean(whole!) }
}

/** Servers let white space stand between the parts of a value, which our own mask does not. */
function isOf({ oneOf: [{ before, schema: wanted, after }] }: Form, text: string): boolean {
  if (!text.startsWith(before) || !text.endsWith(after)) return false
  const value: unknown = JSON.parse(text.slice(before.length, text.length - after.length))
  return checkBy(wanted, value).length === 0
}
