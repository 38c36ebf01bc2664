/** Endpoints that clients may name: servers, never files of this machine. */
const servers = ['sglang', 'vllm', 'llama-cpp', 'openai']

/**
 * Whether a client may name a policy. Only endpoints that the operator listed are allowed, because
 * requests to them carry the operator's key.
 */
export function makeAllowedPolicies(named: readonly string[]): (uri: string) => void {
  const allowed = new Set(named.filter(uri => servers.includes(schemeOf(uri))).map(normal))
  return uri => {
    if (!servers.includes(schemeOf(uri))) {
      const known = servers.map(each => `${each}:URL`).join(', ')
      throw new Error(`a policy is one of ${known}, not ${JSON.stringify(uri.slice(0, 200))}`)
    }
    if (allowed.has(normal(uri))) return
    throw new Error(
      'this service samples only from the policies it was started with; its operator adds others with --allow-policy',
    )
  }
}

function schemeOf(uri: string): string {
  return uri.slice(0, Math.max(0, uri.indexOf(':')))
}

/** An address in its normal form. */
function normal(uri: string): string {
  const at = uri.indexOf(':')
  try {
    const url = new URL(uri.slice(at + 1))
    const path = url.pathname.replace(/(?<!\/)\/+$/, '')
    return `${uri.slice(0, at)}:${url.protocol}//${url.username}:${url.password}@${url.host}${path}${url.search}${url.hash}`
  } catch {
    return uri
  }
}
