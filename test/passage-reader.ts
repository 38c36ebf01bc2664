import type { ModelRenderer } from '@espalier/text/chat'
import { type Policy, plainCapabilities, type SampleRequest } from '../src/base/core/policy.ts'
import { call } from './rolling.ts'
import { tokenSample } from './token-sample.ts'

/**
 * A policy that answers the made questions over passages from nothing but what it is shown: it
 * recalls the block on the town, then the one on its mayor, and reads the answer there.
 */
export function passageReader(
  renderer: ModelRenderer,
): Policy & { readonly requests: readonly SampleRequest[] } {
  const requests: SampleRequest[] = []
  return {
    name: 'passage reader',
    requests,
    capabilities: plainCapabilities,
    async sample(request) {
      const { prompt, maxTokens } = request
      requests.push({ ...request, prompt: { ...prompt, ids: prompt.ids.slice() } })
      const said = answerTo(renderer.decode(prompt.ids))
      const ids = renderer.tokenizer.encode(`${said}<|im_end|>`).slice(0, maxTokens)
      return tokenSample(ids, { prompt: prompt.ids.length, logprob: -0.1 })
    },
    async [Symbol.asyncDispose]() {},
  }
}

function answerTo(shown: string): string {
  const [question, town] = /Question: [^\n]*mayor of (\w+)/.exec(shown) ?? []
  if (!question || !town) return '\\boxed{unknown}'
  const read = textOn(shown, town)
  const mayor = read && /Its mayor is (\w+ \w+),/.exec(read)?.[1]
  if (!mayor) return recallOn(shown, town)
  const life = textOn(shown, mayor)
  const wanted = question.includes('In which year') ? /birth was in (\d+)/ : /that of an? (\w+)/
  const found = life && wanted.exec(life)?.[1]
  return found ? `It says so. \\boxed{${found}}` : recallOn(shown, mayor)
}

/** The text on a title in full, where it is shown: as a passage, or as a block that was given back. */
function textOn(shown: string, title: string): string | undefined {
  const start = [`\n${title}: ${title} `, `<tool_response>\n${title}: ${title} `]
    .map(text => shown.indexOf(text))
    .find(at => at >= 0)
  return start === undefined ? undefined : shown.slice(start, start + 700)
}

function recallOn(shown: string, title: string): string {
  const block = new RegExp(`<block_(\\d+)>Open: ${title}:`).exec(shown)?.[1]
  if (!block || !shown.includes('recall')) return '\\boxed{unknown}'
  return call('recall', { block: Number(block) }).replace('<|im_end|>', '')
}
