/** Names of variables whose values are nobody's business. */
const secretName = /key|token|secret|passw|credential|webhook|auth/i

/** Shapes of secrets that stand in texts. No part can be matched in two ways, so that it is linear. */
const shapes: readonly (readonly [RegExp, string])[] = [
  [/\b(bearer|basic)\s+[\w.~+/=-]{8,}/gi, '$1 [redacted]'],
  [/:\/\/[^\s/@:]{1,200}:[^\s/@]{1,200}@/g, '://[redacted]@'],
  [/\b(sk|pk|rk|hf|ghp|gho|xox[abp])[-_][\w-]{12,}/g, '[redacted]'],
  [
    /(["']?[\w-]{0,40}(?:key|token|secret|password)["']?\s?[=:]\s?["']?)[^\s"',;&]{6,}/gi,
    '$1[redacted]',
  ],
  [/([?&](?:key|token|access_token|sign|signature|secret)=)[^&\s"']+/gi, '$1[redacted]'],
]

/** Takes secrets out of texts: those it was told of, and what looks like one. */
export type Redact = (text: string) => string

/** Opens a redactor that also knows the values of secret variables. */
export function openRedact(
  variables: Readonly<Record<string, string | undefined>>,
  known: readonly string[] = [],
): Redact {
  const values = Object.entries(variables).flatMap(([name, value]) =>
    value !== undefined && value.length >= 8 && secretName.test(name) ? [value] : [],
  )
  const secrets = [...values, ...known.filter(each => each.length >= 4)].toSorted(
    (a, b) => b.length - a.length,
  )
  return text => {
    const without = secrets.reduce((left, secret) => left.replaceAll(secret, '[redacted]'), text)
    return shapes.reduce((left, [shape, put]) => left.replace(shape, put), without)
  }
}
