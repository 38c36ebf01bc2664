import type { Policy } from '../../base/core/policy.ts'
import {
  type OpenScheme,
  openPolicy as openByScheme,
  type PolicyOptions,
} from '../../engine/policies/open-policy.ts'
import { byteModel, openRenderer } from './model-source.ts'

/** Schemes besides those of servers and files, by name; each is loaded when it is named. */
const schemes: Readonly<Record<string, OpenScheme>> = {
  async embedded(folder) {
    const { openEmbedded } = await import('../../learn/model/embedded.ts')
    return await openEmbedded(folder === '' ? undefined : folder)
  },
  async tinker(rest, options) {
    const { openTinkerPolicy } = await import('../../engine/policies/tinker/session.ts')
    return await openTinkerPolicy(rest, options)
  },
}

/** Whether a URI names the policy that runs inside. */
export function isEmbeddedUri(uri: string): boolean {
  return uri === 'embedded' || uri.startsWith('embedded:')
}

/**
 * Opens a policy by its URI: `embedded`, `embedded:DIR`, `sglang:URL`, `vllm:URL`, `llama-cpp:URL`,
 * `openai:URL`, `tinker:URL`, `scripted:FILE`, `replay:FILE`. Several share the load. `model` names the folder whose
 * tokenizer encodes the texts of a script.
 */
export async function openPolicy(
  uri: string | readonly string[],
  options: PolicyOptions & { readonly model?: string } = {},
): Promise<Policy> {
  const { model = byteModel, ...given } = options
  // Embedded policies need no retries, and a wrapper would hide their model from trainers.
  const rest = [uri].flat().every(isEmbeddedUri) ? { ...given, retries: false as const } : given
  const isScripted = [uri].flat().some(each => each.startsWith('scripted:'))
  if (!isScripted || rest.encode) return await openByScheme(uri, { schemes, ...rest })
  const { tokenizer } = await openRenderer(model)
  return await openByScheme(uri, { schemes, encode: text => tokenizer.encode(text), ...rest })
}
