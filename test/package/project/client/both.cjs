/** The client in both builds at once, as a page has it whose packages differ in their format. Says what it has found as JSON. */
const common = require('onlyonce/client')
const commonKeys = require('onlyonce/client/keys')
const commonReact = require('onlyonce/react')

async function main() {
  const module = await import('onlyonce/client')
  const moduleKeys = await import('onlyonce/client/keys')
  const moduleReact = await import('onlyonce/react')
  const fetch = async () => new Response('', { status: 401 })
  const calls = [common, module].map(({ idempotentFetch }) =>
    idempotentFetch({ fetch })('https://api.example.com/', { method: 'POST', key: 'a-key-of-mine' }),
  )
  const thrown = (await Promise.allSettled(calls)).map(({ reason }) => reason)
  const storage = moduleKeys.memoryStorage()
  const keys = []
  for (const { pendingAction } of [commonKeys, moduleKeys]) {
    const action = pendingAction('checkout', { user: null, storage })
    const send = async ({ key }) => {
      keys.push(key)
      throw new module.OutcomeUnknown({ code: 'no_answer' })
    }
    await action.run({ amount: 1 }, send).catch(() => {})
  }
  console.log(
    JSON.stringify({
      two_copies: common.OutcomeUnknown !== module.OutcomeUnknown,
      known: thrown.every(
        (error) => error instanceof common.OutcomeUnknown && error instanceof module.OutcomeUnknown,
      ),
      one_key: new Set(keys).size === 1,
      hooks: [commonReact, moduleReact].map(({ useIdempotentAction }) => typeof useIdempotentAction),
    }),
  )
}

main()
