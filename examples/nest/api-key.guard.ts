import { type CanActivate, type ExecutionContext, UnauthorizedException } from '@nestjs/common'

/** Demo keys, for everybody to see. Real ones are random, and stored as hashes. */
const CUSTOMERS = new Map([
  ['demo-acme', 'acme'],
  ['demo-globex', 'globex'],
])

/** Guards run before any key is looked up: nobody gets a replay of what they may not see. */
export class ApiKeyGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const request = context.switchToHttp().getRequest()
    const [, apiKey = ''] = /^Bearer (\S+)$/i.exec(request.headers.authorization ?? '') ?? []
    const customer = CUSTOMERS.get(apiKey)
    if (customer === undefined) throw new UnauthorizedException('Send Authorization: Bearer demo-acme.')
    request.customer = customer
    return true
  }
}
