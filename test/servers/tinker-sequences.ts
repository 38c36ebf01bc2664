interface Prompted {
  readonly prompt: { readonly chunks: readonly { readonly tokens: readonly number[] }[] }
}

interface Claiming {
  readonly model_input: Prompted['prompt']
  readonly loss_fn_inputs: Readonly<Record<string, { readonly data: readonly number[] }>>
  /** As text: `prompt NAME 0-4`. */
  readonly model_input_spans?: readonly string[]
  readonly loss_fn_input_spans?: readonly string[]
}

/** What a Tinker server sampled, by name; clients' claims about the origin of tokens are checked against it. */
export function openSequences() {
  const known = new Map<string, { prompt: readonly number[]; sampled: readonly number[] }>()
  let claims = 0
  const tokensOf = (span: string): readonly number[] => {
    const [, kind, name, from, to] = /^(prompt|sampled) (\S+) (\d+)-(\d+)$/.exec(span)!
    claims++
    return known.get(name!)![kind as 'prompt' | 'sampled'].slice(Number(from), Number(to))
  }
  return {
    claims: () => claims,
    keep(name: string, { prompt }: Prompted, sampled: readonly number[]) {
      known.set(name, { prompt: prompt.chunks.flatMap(({ tokens }) => tokens), sampled })
    },
    check(data: readonly Claiming[]) {
      for (const datum of data) {
        const { model_input_spans: inputs = [], loss_fn_input_spans: targets = [] } = datum
        if (inputs.length + targets.length === 0) continue
        const read = datum.model_input.chunks.flatMap(({ tokens }) => tokens)
        const asked = datum.loss_fn_inputs.target_tokens!.data
        if (inputs.flatMap(tokensOf).join() !== read.join()) throw new Error('other inputs')
        if (targets.flatMap(tokensOf).join() !== asked.join()) throw new Error('other targets')
      }
    },
  }
}
