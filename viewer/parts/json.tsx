import { formatJson } from '../data/format.ts'

/** JSON as plain text; nothing in it is run. */
export function Json({ value }: { value: unknown }) {
  return (
    <pre class="json" tabIndex={0}>
      {formatJson(value)}
    </pre>
  )
}
