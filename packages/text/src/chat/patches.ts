/** A change to a published template that mends a defect of it. */
export interface TemplatePatch {
  readonly name: string
  /** What goes wrong without it. */
  readonly reason: string
  /** The passage as it is published, however indented; a template without it is left alone. */
  readonly find: readonly string[]
  readonly replace: readonly string[]
}

const orphanReason =
  'Content with a </think> that no <think> opened lost all text before it to the reasoning, ' +
  'and text between several closers vanished, so a re-rendered turn was not what was said'

/** Every patch that is applied by default, in order. */
export const templatePatches: readonly TemplatePatch[] = [
  {
    name: 'qwen3-orphan-think',
    reason: `${orphanReason}: Qwen3, which splits the content of the message.`,
    find: [
      "{%- if '</think>' in message.content %}",
      "{%- set content = message.content.split('</think>')[-1].lstrip('\\n') %}",
      "{%- set reasoning_content = message.content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}",
    ],
    replace: [
      "{%- if message.content.startswith('<think>') and '</think>' in message.content %}",
      "{%- set content = message.content.split('</think>', 1)[1].lstrip('\\n') %}",
      "{%- set reasoning_content = message.content.split('</think>', 1)[0][7:].strip('\\n') %}",
    ],
  },
  {
    name: 'qwen3.5-orphan-think',
    reason: `${orphanReason}: Qwen3.5, GLM-4.6 and others, which split a copy of the content.`,
    find: [
      "{%- if '</think>' in content %}",
      "{%- set reasoning_content = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}",
      "{%- set content = content.split('</think>')[-1].lstrip('\\n') %}",
    ],
    replace: [
      "{%- if content.startswith('<think>') and '</think>' in content %}",
      "{%- set reasoning_content = content.split('</think>', 1)[0][7:].strip('\\n') %}",
      "{%- set content = content.split('</think>', 1)[1].lstrip('\\n') %}",
    ],
  },
  {
    name: 'minimax-m2-orphan-think',
    reason: `${orphanReason}: MiniMax-M2, which strips line breaks on both sides.`,
    find: [
      "{%- if '</think>' in content %}",
      "{%- set reasoning_content = content.split('</think>')[0].strip('\\n').split('<think>')[-1].strip('\\n') %}",
      "{%- set content = content.split('</think>')[-1].strip('\\n') %}",
    ],
    replace: [
      "{%- if content.startswith('<think>') and '</think>' in content %}",
      "{%- set reasoning_content = content.split('</think>', 1)[0][7:].strip('\\n') %}",
      "{%- set content = content.split('</think>', 1)[1].strip('\\n') %}",
    ],
  },
]

/** A template with every patch that fits it, and the patches that did. */
export function patchTemplate(
  source: string,
  patches: readonly TemplatePatch[] = templatePatches,
): { readonly source: string; readonly applied: readonly TemplatePatch[] } {
  const applied: TemplatePatch[] = []
  let text = source
  for (const patch of patches) {
    const patched = text.replace(passageOf(patch), () => patch.replace.join('\n'))
    if (patched !== text) applied.push(patch)
    text = patched
  }
  return { source: text, applied }
}

/** The lines of a passage, one after the other. */
function passageOf({ find }: TemplatePatch): RegExp {
  return new RegExp(find.map(escapePattern).join('\\s*\\n\\s*'))
}

function escapePattern(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')
}
