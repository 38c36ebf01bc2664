/** A sentence of a chat template and what to say instead. */
export interface ToolInstruction {
  /** The sentence as the template has it, between quotes. */
  readonly find: string
  readonly replace: string
}

/** A template that offers tools in other words; one that has no such sentence is refused. */
export function replaceToolInstruction(source: string, { find, replace }: ToolInstruction): string {
  const passage = source.includes(find) ? find : escapeText(find)
  if (!source.includes(passage)) {
    throw new Error(
      `the chat template has no sentence ${JSON.stringify(find)}, so it cannot be replaced`,
    )
  }
  return source.replace(passage, () => (isQuoted(source, passage) ? escapeText(replace) : replace))
}

/** A text as a Jinja string literal has it. */
function escapeText(text: string): string {
  return text
    .replaceAll('\\', '\\\\')
    .replaceAll('\n', '\\n')
    .replaceAll('"', '\\"')
    .replaceAll("'", "\\'")
}

/** Whether the passage lies inside an expression or statement rather than in the template's own text. */
function isQuoted(source: string, passage: string): boolean {
  const before = source.slice(0, source.indexOf(passage))
  return (
    Math.max(before.lastIndexOf('{{'), before.lastIndexOf('{%')) >
    Math.max(before.lastIndexOf('}}'), before.lastIndexOf('%}'))
  )
}
