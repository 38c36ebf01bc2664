import { readFileSync } from 'node:fs'
import type { ConnectionOptions } from 'node:tls'
import type { ClientConfig } from 'pg'
import { SettingError } from '../../base/core/names/setting-error.ts'
import { keepSecret, keepSecretsIn } from '../../base/core/process/secrets.ts'

/** Where a cluster is: a shared database, or one started on this machine together with its workers. */
export type ClusterAddress =
  | { readonly kind: 'postgres'; readonly url: URL }
  | { readonly kind: 'local'; readonly workers: number }

/** Most workers on one machine; more are surely a mistake. */
const mostWorkers = 256

/** Reads `postgres://…` or `local:N`. */
export function readAddress(text: string): ClusterAddress {
  const local = /^local:(\d+)$/.exec(text)
  if (local) {
    const workers = Number(local[1])
    if (workers >= 1 && workers <= mostWorkers) return { kind: 'local', workers }
    throw new SettingError(`--cluster ${text}: local:N starts 1 to ${mostWorkers} workers here`)
  }
  if (text.includes('[redacted]')) {
    throw new SettingError(
      '--cluster: the password in the address was not kept. Name the address again without one, and set PGPASSWORD',
    )
  }
  if (/^postgres(ql)?:\/\//.test(text) && URL.canParse(text)) {
    keepSecretsIn(text)
    const url = new URL(text)
    keepSecret(decodeURIComponent(url.password))
    return { kind: 'postgres', url }
  }
  throw new SettingError(
    '--cluster: this is neither postgres://USER@HOST:PORT/DATABASE nor local:N. The password comes from PGPASSWORD',
  )
}

/** An address for people: without its password. */
export function shownAddress(url: URL): string {
  return `${url.protocol}//${url.host}${url.pathname}`
}

/** The driver's options; passwords and certificates come from PostgreSQL's own environment variables. */
export function connectionOf(
  url: URL,
  variables: Readonly<Record<string, string | undefined>> = process.env,
): ClientConfig {
  const { PGPASSWORD, PGUSER, PGSSLROOTCERT } = variables
  keepSecret(PGPASSWORD)
  const mode = url.searchParams.get('sslmode') ?? variables.PGSSLMODE ?? 'disable'
  const root = url.searchParams.get('sslrootcert') ?? PGSSLROOTCERT
  const password = decodeURIComponent(url.password) || PGPASSWORD
  const user = decodeURIComponent(url.username) || PGUSER
  return {
    host: url.hostname.replace(/^\[|\]$/g, ''),
    port: url.port === '' ? 5432 : Number(url.port),
    database: decodeURIComponent(url.pathname.slice(1)) || 'postgres',
    ...(user !== undefined && { user }),
    ...(password !== undefined && { password }),
    ssl: encryption(mode, root),
  }
}

const modes = ['disable', 'require', 'verify-ca', 'verify-full'] as const

/** TLS options with the meaning of PostgreSQL's `sslmode`; `require` checks the certificate if a root is given. */
function encryption(mode: string, root: string | undefined): ConnectionOptions | false {
  if (mode === 'disable') return false
  if (!modes.includes(mode as (typeof modes)[number])) {
    throw new SettingError(`PGSSLMODE or sslmode: "${mode}" is not one of ${modes.join(', ')}`)
  }
  const ca = root === undefined ? {} : { ca: readCertificate(root) }
  if (mode === 'verify-full') return { ...ca, rejectUnauthorized: true }
  const isChecked = mode === 'verify-ca' || root !== undefined
  return {
    ...ca,
    rejectUnauthorized: isChecked,
    // Only verify-full compares the host name with the certificate.
    ...(isChecked && { checkServerIdentity: () => undefined }),
  }
}

function readCertificate(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (cause) {
    throw new SettingError(`PGSSLROOTCERT: ${path} cannot be read`, { cause })
  }
}
