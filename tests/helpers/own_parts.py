"""Parts that replace those of a run: some fit, and each of the others is wrong in one way."""

import torch
from torch import nn

from plyzero.trainer.loss import loss
from plyzero.trainer.targets import mixed_targets


class Fits(nn.Module):
    logits = 9

    def __init__(self, observation_shape, num_actions, *, blocks, channels):
        super().__init__()
        self.policy, self.value = nn.Linear(18, self.logits), nn.Linear(18, 3)

    def forward(self, observations):
        features = self.features(observations)
        return self.policy(features), self.value(features)

    def features(self, observations):
        return observations.flatten(1)


def with_other(**attributes):
    return type("Other", (Fits,), attributes)


Narrow = with_other(logits=8)
OneOutput = with_other(forward=lambda self, observations: self.policy(observations.flatten(1)))
Constant = with_other(forward=lambda self, observations: tuple(torch.zeros(len(observations), n) for n in (9, 3)))
View = with_other(features=lambda self, observations: observations.view(-1, 18))
Raises = with_other(features=lambda self, observations: observations.flatten(1) @ torch.ones(5))  # line 33
NotInOnnx = with_other(features=lambda self, observations: torch.special.i0(observations.flatten(1)))
OneBatchSize = with_other(features=lambda self, observations: observations.reshape(len(observations), 18))
OtherArguments = with_other(__init__=lambda self, shape: None)


def changed(function, change):
    def changed_function(*arguments, **settings):
        found = function(*arguments, **settings)
        return found._replace(**change(found))

    return changed_function


loss_per_position = changed(loss, lambda found: {"total": found.total + torch.ones(3)})
short_wdl = changed(mixed_targets, lambda found: {"wdl": found.wdl[:-1]})
negative_wdl = changed(mixed_targets, lambda found: {"wdl": found.wdl - 0.5})
numbers_for_a_mask = changed(mixed_targets, lambda found: {"is_sample": found.is_sample * 1})


def a_function(*arguments, **settings):
    return None


def tuple_of_losses(*outputs, **targets):
    return tuple(loss(*outputs, **targets))


def one_argument(batch):
    return loss(*batch)


def sgd(parameters, settings):
    return torch.optim.SGD(parameters, lr=1, momentum=0.5)


def halving(step, settings):
    return settings.learning_rate / 2**step


class Plain(Fits):
    """Without batch normalisation, so that a step on a batch is the same in one process and in two."""

    def __init__(self, *shapes, **size):
        super().__init__(*shapes, **size)
        self.hidden, self.never_used = nn.Linear(18, 18), nn.Parameter(torch.ones(5))

    def features(self, observations):
        return torch.relu(self.hidden(observations.flatten(1)))


def policy_alone(policy_logits, wdl_logits, **targets):
    found = loss(policy_logits, wdl_logits, **targets)
    return found._replace(total=loss(policy_logits, wdl_logits.detach(), **targets).total)
