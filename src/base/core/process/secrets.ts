/** What replaces a secret. */
const hidden = '[redacted]'

/** Shorter secrets would match ordinary words. */
const shortest = 8

/** Every spelling of every secret that this process was given, the longest first. */
let spellings: readonly string[] = []

/**
 * Remembers a key, a token or a password for as long as the process lives. From then on nothing that
 * it writes, prints or sends on contains it: all of that goes through `withoutSecrets`.
 */
export function keepSecret(secret: string | undefined): void {
  if (secret === undefined || secret.length < shortest || spellings.includes(secret)) return
  const quoted = inQuotes(secret)
  // Arguments of calls are JSON within JSON.
  const spelled = [secret, quoted, inQuotes(quoted), encodeURIComponent(secret), ...encoded(secret)]
  spellings = [...new Set([...spellings, ...spelled])].toSorted((a, b) => b.length - a.length)
}

/** A text in hexadecimal digits and in both alphabets of base64, wherever it begins in what was encoded. */
function encoded(text: string): readonly string[] {
  const alone = Buffer.from(text)
  const hex = alone.toString('hex')
  const inWhole = [alone.toString('base64'), alone.toString('base64url')]
  const inBase64 = [0, 1, 2].flatMap(before => {
    const bytes = Buffer.from(`${' '.repeat(before)}${text}`)
    // Only whole groups of three bytes are spelled alike whatever follows; what was before is in the first.
    const whole = bytes.subarray(0, bytes.length - (bytes.length % 3))
    const from = before === 0 ? 0 : 4
    return (['base64', 'base64url'] as const).map(kind => whole.toString(kind).slice(from))
  })
  return [hex, hex.toUpperCase(), ...inWhole, ...inBase64].filter(each => each.length >= shortest)
}

/** A text as it stands between the quotes of JSON. */
function inQuotes(text: string): string {
  return JSON.stringify(text).slice(1, -1)
}

/** Every secret that is known, for a thread of this process. */
export function knownSecrets(): readonly string[] {
  return spellings
}

/** A text without the secrets that are known. */
export function withoutSecrets(text: string): string {
  let shown = text
  for (const secret of spellings) {
    if (shown.includes(secret)) shown = shown.replaceAll(secret, hidden)
  }
  return shown
}

/** Plain data without the secrets that are known, in whatever text of it they stand. */
export function withoutSecretsIn<Data>(data: Data): Data {
  if (spellings.length === 0) return data
  return tells(JSON.stringify(data)) ? (hideIn(data) as Data) : data
}

/** Plain data as JSON without the secrets that are known; its numbers stay, whatever their digits. */
export function jsonWithoutSecrets(data: unknown, indent?: number): string {
  const text = JSON.stringify(data, null, indent)
  return tells(text) ? hideInTexts(text) : text
}

/**
 * Written JSON without the secrets that are known: one piece of it, or lines and server-sent events. Its
 * numbers stay, whatever their digits. What turns out to be no JSON is plain text.
 */
export function withoutSecretsInJson(written: string): string {
  if (!tells(written)) return written
  if (isJson(written)) return hideInTexts(written)
  return written.split('\n').map(hideInLine).join('\n')
}

function hideInLine(line: string): string {
  const begin = line.startsWith('data:') ? 'data:'.length : 0
  const rest = line.slice(begin)
  return line.slice(0, begin) + (isJson(rest) ? hideInTexts(rest) : withoutSecrets(rest))
}

/** Whether this is a list or an object; a number alone may be a secret. */
function isJson(text: string): boolean {
  if (!/^\s*[[{]/.test(text)) return false
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

/** Hides secrets in the texts and names of JSON, where an escape may have the first letter of one. */
function hideInTexts(json: string): string {
  return json.replace(/"[^"\\]*(?:\\.[^"\\]*)*"/g, text =>
    JSON.stringify(withoutSecrets(JSON.parse(text))),
  )
}

function tells(text: string): boolean {
  return spellings.some(secret => text.includes(secret))
}

function hideIn(data: unknown): unknown {
  if (typeof data === 'string') return withoutSecrets(data)
  if (Array.isArray(data)) return data.map(hideIn)
  if (typeof data !== 'object' || data === null) return data
  const fields = Object.entries(data)
  return Object.fromEntries(fields.map(([name, field]) => [withoutSecrets(name), hideIn(field)]))
}

/** Names of environment variables whose values are secret. */
const secretName = /key|token|secret|passw|credential|webhook|auth/i
/** Names that surely mean a secret, even if the value has several words. */
const surelySecret = /(?:^|_)(?:key|token|secret|password|credentials?)$/i

/** Remembers the values of variables that are named like secrets, except paths. */
export function keepSecretVariables(variables: Readonly<Record<string, string | undefined>>): void {
  for (const [name, value] of Object.entries(variables)) {
    if (!value || !secretName.test(name) || /^[./~]/.test(value)) continue
    if (surelySecret.test(name) || !/\s/.test(value)) keepSecret(value)
  }
}

/** Name and password in an address, and parameters of it that carry a secret. */
const inAddresses = [
  /:\/\/([^\s/@:]{1,200}:([^\s/@]{1,200})@)/g,
  /[?&][\w-]{0,40}(?:key|token|sign|signature|sig|secret|password|passwd|auth)=([^&\s"'#]+)/gi,
]

/** Remembers the secrets in the addresses of settings, at any depth. */
export function keepSecretsIn(settings: unknown): void {
  if (typeof settings === 'string') {
    for (const shape of inAddresses) {
      for (const [, ...found] of settings.matchAll(shape)) {
        for (const each of found) keepSecret(each)
        // Keep the decoded form too: that is what is sent, and what servers quote.
        for (const each of found.map(decoded)) keepSecret(each)
      }
    }
  } else if (typeof settings === 'object' && settings !== null) {
    for (const each of Object.values(settings)) keepSecretsIn(each)
  }
}

/** A part of an address, percent-decoded. */
function decoded(part: string): string | undefined {
  try {
    return decodeURIComponent(part)
  } catch {
    return undefined
  }
}

/** Patterns of secrets in texts. No part can match in two ways, so that matching is linear. */
const shapes: readonly (readonly [RegExp, string])[] = [
  [/\b(bearer|basic)\s+[\w.~+/=-]{8,}/gi, `$1 ${hidden}`],
  [/:\/\/[^\s/@:]{1,200}:[^\s/@]{1,200}@/g, `://${hidden}@`],
  [/\b(sk|pk|rk|hf|ghp|gho|xox[abp])[-_][\w-]{12,}/g, hidden],
  [
    /(["']?[\w-]{0,40}(?:key|token|secret|password)["']?\s?[=:]\s?["']?)[^\s"',;&]{6,}/gi,
    `$1${hidden}`,
  ],
  [/([?&](?:key|token|access_token|sign|signature|secret)=)[^&\s"']+/gi, `$1${hidden}`],
]

/** A text for people elsewhere, also without what only looks like a secret. */
export function withoutLikelySecrets(text: string): string {
  return shapes.reduce((left, [shape, put]) => left.replace(shape, put), withoutSecrets(text))
}
