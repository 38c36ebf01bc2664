/** A change to a published template that mends a defect of it. */
export interface TemplatePatch {
  readonly name: string
  /** What goes wrong without it. */
  readonly reason: string
  /** The passage as it is published; a template without it is left alone. */
  readonly find: string
  readonly replace: string
}

/** Every patch that is applied by default, in order. */
export const templatePatches: readonly TemplatePatch[] = [
  {
    name: 'qwen3-orphan-think',
    reason:
      'Content with a </think> that no <think> opened lost all text before it to the reasoning, ' +
      'and text between several closers vanished, so a re-rendered turn was not what was said.',
    find: `{%- if '</think>' in message.content %}
                {%- set content = message.content.split('</think>')[-1].lstrip('\\n') %}
                {%- set reasoning_content = message.content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}`,
    replace: `{%- if message.content.startswith('<think>') and '</think>' in message.content %}
                {%- set content = message.content.split('</think>', 1)[1].lstrip('\\n') %}
                {%- set reasoning_content = message.content.split('</think>', 1)[0][7:].strip('\\n') %}`,
  },
  {
    name: 'qwen3.5-orphan-think',
    reason:
      'The same passage as the Qwen3 tokenizers of 2025 have it, with content held in a variable.',
    find: `{%- if '</think>' in content %}
                {%- set reasoning_content = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
                {%- set content = content.split('</think>')[-1].lstrip('\\n') %}`,
    replace: `{%- if content.startswith('<think>') and '</think>' in content %}
                {%- set reasoning_content = content.split('</think>', 1)[0][7:].strip('\\n') %}
                {%- set content = content.split('</think>', 1)[1].lstrip('\\n') %}`,
  },
]

/** A template with every patch that fits it, and the names of those that did. */
export function patchTemplate(
  source: string,
  patches: readonly TemplatePatch[] = templatePatches,
): { readonly source: string; readonly applied: readonly TemplatePatch[] } {
  const applied = patches.filter(patch => source.includes(patch.find))
  const patched = applied.reduce(
    (text, { find, replace }) => text.replace(find, () => replace),
    source,
  )
  return { source: patched, applied }
}
