import { formatJson } from '../data/format.ts'

/** JSON as text: whatever it says, it is only read. */
export function Json({ value }: { value: unknown }) {
  return (
    <pre class="json" tabIndex={0}>
      {formatJson(value)}
    </pre>
  )
}
