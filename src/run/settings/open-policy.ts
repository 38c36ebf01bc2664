import type { Policy } from '../../base/core/policy.ts'
import {
  openPolicy as openByScheme,
  type PolicyOptions,
} from '../../engine/policies/open-policy.ts'
import { type PolicyScheme, readUri } from '../../engine/policies/schemes.ts'
import { byteModel, openRenderer } from './model-source.ts'
import { offered } from './offered.ts'

/** The scheme of a policy's URI and what follows it; no scheme if there is none of that name. */
export function policyScheme(uri: string): {
  readonly rest: string
  readonly scheme: PolicyScheme | undefined
} {
  return readUri(uri, offered().schemes)
}

/** Whether a URI names a policy that has its weights inside. */
export function isInsideUri(uri: string): boolean {
  return policyScheme(uri).scheme?.leadsTo === 'weights inside'
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
  const rest = { schemes: offered().schemes, ...given }
  const writesText = [uri].flat().some(each => policyScheme(each).scheme?.writesText)
  if (!writesText || rest.encode) return await openByScheme(uri, rest)
  const { tokenizer } = await openRenderer(model)
  return await openByScheme(uri, { encode: text => tokenizer.encode(text), ...rest })
}
