/** What blocks with controllers of NestJS take as given. */
import type { CanActivate, PipeTransform, Type } from '@nestjs/common'

export interface NewOrder {
  readonly item: string
}
export declare const ApiKeyGuard: Type<CanActivate>
export declare const checkOrder: PipeTransform<unknown, NewOrder>
