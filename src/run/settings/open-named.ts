import { nearFile } from '../../base/core/names/near-file.ts'
import { SettingError } from '../../base/core/names/setting-error.ts'
import { ServerError } from '../../engine/policies/transport/server-error.ts'
import type { Settings } from './settings.ts'
import { UserCodeError } from './user-part.ts'

/**
 * Opens a part by its name. If that fails, the name is a wrong setting, and the error says where
 * (`--policy x`); unreachable servers and errors in the user's own code are failures instead.
 */
export async function openNamed<T>(
  place: string | undefined,
  open: () => T | Promise<T>,
): Promise<T> {
  try {
    return await open()
  } catch (cause) {
    if (cause instanceof SettingError || cause instanceof UserCodeError) throw cause
    if (isUnreachable(cause)) throw cause
    const reason = reasonOf(cause)
    throw new SettingError(place === undefined ? reason : `${place}: ${reason}`, { cause })
  }
}

/** The value of a required setting. */
export function needed<Name extends keyof Settings>(
  values: Settings,
  name: Name,
): NonNullable<Settings[Name]> {
  const value = values[name]
  if (value === undefined || value === null) {
    throw new SettingError(`--${name} is missing: name one with the flag or in a config file`)
  }
  return value
}

/** What the system's codes mean if somebody named a file, a folder or a port. */
const meanings: Readonly<Record<string, (path: string | undefined) => string>> = {
  ENOENT: path => `there is no file or folder ${path}${path ? nearSentence(path) : ''}`,
  EISDIR: (path = 'this') => `${path} is a folder; name a file`,
  ENOTDIR: path => `there is no ${path}: a part of the path is a file, not a folder`,
  EACCES: (path = 'this') => `${path} cannot be opened: permission is denied`,
  EADDRINUSE: () => 'something listens there already; name another port',
}

function nearSentence(path: string): string {
  const near = nearFile(path)
  return near && `.${near}`
}

function reasonOf(cause: unknown): string {
  const { code = '', path, message } = cause as NodeJS.ErrnoException
  return meanings[code]?.(path) ?? message ?? String(cause)
}

const networkCodes = /^(?:ECONN|ENOTFOUND|EAI_|ETIMEDOUT|EHOST|ENET|EPIPE|UND_ERR)/

/** Whether an error comes from the network or a server. */
function isUnreachable(cause: unknown): boolean {
  for (let each = cause, depth = 0; each instanceof Error && depth < 8; depth++) {
    if (each instanceof ServerError || each.name === 'TimeoutError') return true
    if (networkCodes.test(String((each as NodeJS.ErrnoException).code))) return true
    each = each.cause
  }
  return false
}
